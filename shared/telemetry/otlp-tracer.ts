/** Sends spans to an OpenTelemetry collector by OTLP/HTTP with JSON. Loaded only if a collector is configured. */
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
  type IdGenerator,
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

/**
 * Creates the tracer. Endpoint, headers, sampling and resource names come from the standard OTEL_* variables, which the
 * libraries read.
 */
export function createOtlpTracer(
  serviceName: string,
  log: Log,
): { tracer: Tracer; close(): Promise<void> } {
  const named = resourceFromAttributes({ 'service.name': serviceName, 'service.version': VERSION });
  const provider = new BasicTracerProvider({
    resource: defaultResource()
      .merge(named)
      .merge(detectResources({ detectors: [envDetector] })),
    idGenerator: createIdGenerator(),
    spanProcessors: [new BatchSpanProcessor(withFailureLog(new OTLPTraceExporter(), log))],
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
            traceId: from.traceId,
            spanId: from.spanId,
            traceFlags: from.flags,
            isRemote: true,
          });
    const span = spans.startSpan(name, { kind: KINDS[kind], attributes }, context);
    const { traceId, spanId, traceFlags } = span.spanContext();
    return {
      traceparent: formatTraceparent({ traceId, spanId, flags: traceFlags }),
      setAttributes: (attributes) => void span.setAttributes(attributes),
      end(problem) {
        if (problem !== null) span.setStatus({ code: SpanStatusCode.ERROR, message: problem });
        span.end();
      },
    };
  }

  return { tracer: { open }, close: () => provider.shutdown() };
}

/** Wraps an exporter to log when exports begin to fail, and when they succeed again. */
function withFailureLog(exporter: SpanExporter, log: Log): SpanExporter {
  let isFailing = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const { error } = result;
        if (error !== undefined && !isFailing) {
          const detail = withoutPasswords(messageOf(error)).slice(0, MAX_DETAIL_CHARS);
          log.warn({ detail }, 'span export failed');
        }
        if (error === undefined && isFailing) log.info('span export succeeded again');
        isFailing = error !== undefined;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  };
}

/** Derives the trace id from the request id, so that deferred work of a request belongs to its trace. */
function createIdGenerator(): IdGenerator {
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

export type TraceParent = { traceId: string; spanId: string; flags: number };

const FORM = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/;

/** Parses a `traceparent` header (W3C Trace Context, level 1). Null if it is invalid. */
export function parseTraceparent(text: string): TraceParent | null {
  const [, version = '', traceId = '', spanId = '', flags = ''] = FORM.exec(text) ?? [];
  const isInvalid =
    version === '' || version === 'ff' || /^0+$/.test(traceId) || /^0+$/.test(spanId);
  return isInvalid ? null : { traceId, spanId, flags: Number.parseInt(flags, 16) };
}

export function formatTraceparent({ traceId, spanId, flags }: TraceParent): string {
  return `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, '0')}`;
}
