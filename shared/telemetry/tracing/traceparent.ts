/** The `traceparent` header (W3C trace context, level 1). Pure. */

export type TraceParent = { traceId: string; spanId: string; flags: number };

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;

/** Null for what is none: whoever sends it is believed nothing else. */
export function parseTraceparent(text: string): TraceParent | null {
  const [, version = '', traceId = '', spanId = '', flags = ''] = FORM.exec(text) ?? [];
  const isNone = version === '' || version === 'ff' || /^0+$/.test(traceId) || /^0+$/.test(spanId);
  return isNone ? null : { traceId, spanId, flags: Number.parseInt(flags, 16) };
}

export function formatTraceparent({ traceId, spanId, flags }: TraceParent): string {
  return `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, '0')}`;
}
