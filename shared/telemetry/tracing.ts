/**
 * Spans for requests, outgoing calls and pod steps. Without a tracer, every function only runs the work. A process sets
 * one tracer when it starts; tests set their own.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { type Clock, withDeadline } from '../runtime/clock.ts';
import { ConfigError, type Environment } from '../runtime/config.ts';
import type { Log } from '../runtime/log.ts';

export type SpanOptions = {
  /** A route or operation without ids, which limits the number of different names. */
  name: string;
  kind: 'server' | 'client' | 'internal';
  attributes?: Readonly<Record<string, string | number>>;
};

export type OpenSpan = {
  /** Header value for outgoing requests (W3C Trace Context). */
  traceparent: string;
  setAttributes(attributes: Readonly<Record<string, string | number>>): void;
  /** Ends the span; null: success. */
  end(problem: string | null): void;
};

export type Tracer = {
  /** `parent` is a traceparent header; null or malformed: the span begins a new trace. */
  open(options: SpanOptions, parent: string | null): OpenSpan;
};

const storage = new AsyncLocalStorage<OpenSpan>();
let tracer: Tracer | null = null;

/** Sets the process's tracer; null turns tracing off. */
export function setTracer(newTracer: Tracer | null): void {
  tracer = newTracer;
}

/** Starts a span. Without `parent` it is a child of the current span. Null if tracing is off. */
export function openSpan(options: SpanOptions, parent?: string): OpenSpan | null {
  return tracer?.open(options, parent ?? currentTraceparent()) ?? null;
}

/** Runs `work`, and everything it starts, within the span. */
export function withSpan<T>(span: OpenSpan | null, work: () => T): T {
  return span === null ? work() : storage.run(span, work);
}

/** Runs `work` within a new span that ends with it. */
export async function inSpan<T>(options: SpanOptions, work: () => Promise<T>): Promise<T> {
  const span = openSpan(options);
  if (span === null) return work();
  try {
    const result = await withSpan(span, work);
    span.end(null);
    return result;
  } catch (error) {
    span.end(error instanceof Error ? error.name : 'error');
    throw error;
  }
}

/** Returns the traceparent header for an outgoing request; null outside a span. */
export function currentTraceparent(): string | null {
  return storage.getStore()?.traceparent ?? null;
}

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'];
/** Time limit for sending the last spans: an unreachable collector must not delay the end of the process. */
const CLOSE_WITHIN_MS = 2_000;

export type Tracing = {
  /** Sends the remaining spans, for at most two seconds. */
  close(): Promise<void>;
};

/** Returns true if the standard variables name a collector. Throws ConfigError if an endpoint is not an http(s) URL. */
export function isTracingConfigured(environment: Environment): boolean {
  if (environment['OTEL_SDK_DISABLED'] === 'true') return false;
  if (environment['OTEL_TRACES_EXPORTER'] === 'none') return false;
  const endpoints = ENDPOINTS.filter((name) => Boolean(environment[name]));
  for (const name of endpoints) {
    const protocol = URL.parse(environment[name] ?? '')?.protocol ?? '';
    if (/^https?:$/.test(protocol)) continue;
    const message = `${name}: must be an http or https URL`;
    throw new ConfigError(message, { problems: [{ name, message }] });
  }
  return endpoints.length > 0;
}

/**
 * Starts tracing if a collector is configured. OTEL_SERVICE_NAME overrides `serviceName`. Rejects like
 * `isTracingConfigured`.
 */
export async function startTracing(
  serviceName: string,
  environment: Environment,
  { clock, log }: { clock: Clock; log: Log },
): Promise<Tracing> {
  if (!isTracingConfigured(environment)) return { close: async () => undefined };
  const { createOtlpTracer } = await import('./otlp-tracer.ts');
  const { tracer, close } = createOtlpTracer(serviceName, log);
  setTracer(tracer);
  return {
    async close() {
      setTracer(null);
      await withDeadline(clock, CLOSE_WITHIN_MS, close()).catch(() => undefined);
    },
  };
}
