/**
 * Spans around requests, hops and steps, where somebody traces: without a tracer every call here is the work alone.
 * One tracer per process, as there is one exporter; it is set at the start, and tests set their own.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { type Clock, withDeadline } from '../runtime/clock.ts';
import { ConfigError, type Environment } from '../runtime/config.ts';
import type { Log } from '../runtime/log.ts';

export type SpanOptions = {
  /** Few different ones: routes and operations, no ids. */
  name: string;
  kind: 'server' | 'client' | 'internal';
  attributes?: Readonly<Record<string, string | number>>;
};

export type OpenSpan = {
  /** As the header of the next hop has it (W3C trace context). */
  traceparent: string;
  note(attributes: Readonly<Record<string, string | number>>): void;
  /** Null: it went well. */
  end(problem: string | null): void;
};

export type Tracer = {
  /** `parent`: a traceparent; null or malformed: the span is a trace's first. */
  open(wish: SpanOptions, parent: string | null): OpenSpan;
};

const storage = new AsyncLocalStorage<OpenSpan>();
let tracer: Tracer | null = null;

/** Null: nobody traces. */
export function setTracer(chosen: Tracer | null): void {
  tracer = chosen;
}

/** Null where nobody traces. Without `parent` it is part of what is under way. */
export function openSpan(wish: SpanOptions, parent?: string): OpenSpan | null {
  return tracer?.open(wish, parent ?? currentTraceparent()) ?? null;
}

/** `work`, and all that comes of it, is part of the span. */
export function withSpan<T>(span: OpenSpan | null, work: () => T): T {
  return span === null ? work() : storage.run(span, work);
}

/** A span as long as `work` takes. */
export async function inSpan<T>(wish: SpanOptions, work: () => Promise<T>): Promise<T> {
  const span = openSpan(wish);
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

/** For the header of a request to another process; null outside of spans. */
export function currentTraceparent(): string | null {
  return storage.getStore()?.traceparent ?? null;
}

// MERGED shared/telemetry/tracing.ts: Begins to trace where the standard variables name a collector; else nothing is loaded.
const ENDPOINTS = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'];
/** A collector that is away holds up no end of a process. */
const CLOSE_WITHIN_MS = 2_000;

export type Tracing = {
  /** Sends what is left, for at most two seconds. */
  close(): Promise<void>;
};

/** Throws ConfigError when an endpoint is no http(s) URL. */
export function isTracingConfigured(environment: Environment): boolean {
  if (environment['OTEL_SDK_DISABLED'] === 'true') return false;
  if (environment['OTEL_TRACES_EXPORTER'] === 'none') return false;
  const given = ENDPOINTS.filter((name) => Boolean(environment[name]));
  for (const name of given) {
    const protocol = URL.parse(environment[name] ?? '')?.protocol ?? '';
    if (/^https?:$/.test(protocol)) continue;
    const message = `${name}: has to be an http or https URL`;
    throw new ConfigError(message, { problems: [{ name, message }] });
  }
  return given.length > 0;
}

/** `serviceName` counts unless OTEL_SERVICE_NAME says otherwise. Rejects with ConfigError as `isTracingConfigured` does. */
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
