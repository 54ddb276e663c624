/** Begins to trace where the standard variables name a collector; else nothing is loaded. */
import type { Clock } from '../clock.ts';
import type { Environment } from '../config.ts';
import { withDeadline } from '../with-deadline.ts';
import { traceWith } from './spans.ts';

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'];
/** A collector that is away holds up no end of a process. */
const CLOSE_WITHIN_MS = 2_000;

export type Tracing = {
  /** Sends what is left, for at most two seconds. */
  close(): Promise<void>;
};

export function wantsTracing(environment: Environment): boolean {
  if (environment['OTEL_SDK_DISABLED'] === 'true') return false;
  if (environment['OTEL_TRACES_EXPORTER'] === 'none') return false;
  return ENDPOINTS.some((name) => Boolean(environment[name]));
}

/** `serviceName` counts unless OTEL_SERVICE_NAME says otherwise. */
export async function startTracing(
  serviceName: string,
  environment: Environment,
  clock: Clock,
): Promise<Tracing> {
  if (!wantsTracing(environment)) return { close: async () => undefined };
  const { createOtlpTracer } = await import('./otlp-tracer.ts');
  const { tracer, close } = createOtlpTracer(serviceName);
  traceWith(tracer);
  return {
    async close() {
      traceWith(null);
      await withDeadline(clock, CLOSE_WITHIN_MS, close()).catch(() => undefined);
    },
  };
}
