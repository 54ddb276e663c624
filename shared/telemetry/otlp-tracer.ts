/** A tracer that sends spans to an OpenTelemetry collector, by OTLP over HTTP with JSON. Loaded only where one is configured. */
import { hash } from 'node:crypto';
import { ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import {
  defaultResource,
  detectResources,
  envDetector,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  RandomIdGenerator,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base';
import { messageOf } from '../runtime/errors.ts';
import type { Log } from '../runtime/log.ts';
import { currentRequestId } from '../runtime/request-context.ts';
import { withoutPasswords } from '../runtime/secrets.ts';
import { VERSION } from '../runtime/version.ts';
import type { OpenSpan, Tracer } from './tracing.ts';

const KINDS = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  internal: SpanKind.INTERNAL,
} as const;
const TRACE_ID_CHARS = 32;
const MAX_DETAIL_CHARS = 200;

/** Where to, headers, sampling and names come from the standard OTEL_* variables, which its libraries read themselves. */
export function createOtlpTracer(
  serviceName: string,
  log: Log,
): { tracer: Tracer; close(): Promise<void> } {
  const named = resourceFromAttributes({ 'service.name': serviceName, 'service.version': VERSION });
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(named)
      .merge(detectResources({ detectors: [envDetector] })),
    idGenerator: { ...idGenerator() },
    spanProcessors: [new BatchSpanProcessor(telling(new OTLPTraceExporter(), log))],
  });
  const spans = provider.getTracer('podwright', VERSION);

  function open(
    { name, kind, attributes = {} }: Parameters<Tracer['open']>[0],
    parent: string | null,
  ): OpenSpan {
    const from = parent === null ? null : parseTraceparent(parent);
    const context =
      from === null
        ? ROOT_CONTEXT
        : trace.setSpanContext(ROOT_CONTEXT, {
            ...{ traceId: from.traceId, spanId: from.spanId, traceFlags: from.flags },
            isRemote: true,
          });
    const span = spans.startSpan(name, { kind: KINDS[kind], attributes }, context);
    const { traceId, spanId, traceFlags } = span.spanContext();
    return {
      traceparent: formatTraceparent({ traceId, spanId, flags: traceFlags }),
      note: (more) => void span.setAttributes(more),
      end(problem) {
        if (problem !== null) span.setStatus({ code: SpanStatusCode.ERROR, message: problem });
        span.end();
      },
    };
  }

  return { tracer: { open }, close: () => provider.shutdown() };
}

/** An exporter that logs when it begins to fail, and when it works again. */
function telling(exporter: SpanExporter, log: Log): SpanExporter {
  let fails = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const { error } = result;
        if (error !== undefined && !fails) {
          const detail = withoutPasswords(messageOf(error)).slice(0, MAX_DETAIL_CHARS);
          log.warn({ detail }, 'spans do not reach the collector');
        }
        if (error === undefined && fails) log.info('spans reach the collector again');
        fails = error !== undefined;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}

/** What is done later for a request, in another trace of calls, is found in the same trace: its id is the request's. */
function idGenerator() {
  const random = new RandomIdGenerator();
  return {
    generateSpanId: () => random.generateSpanId(),
    generateTraceId() {
      const requestId = currentRequestId();
      return requestId === null
        ? random.generateTraceId()
        : hash('sha256', `trace of ${requestId}`).slice(0, TRACE_ID_CHARS);
    },
  };
}

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
