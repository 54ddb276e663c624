/** Begins to trace where the standard variables name a collector; else nothing is loaded. */
import type { Clock } from '../../runtime/clock.ts';
import { ConfigError, type Environment } from '../../runtime/config.ts';
import type { Log } from '../../runtime/log.ts';
import { withDeadline } from '../../runtime/with-deadline.ts';
import { traceWith } from './spans.ts';

const ENDPOINTS = ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'];
/** A collector that is away holds up no end of a process. */
const CLOSE_WITHIN_MS = 2_000;

export type Tracing = {
  /** Sends what is left, for at most two seconds. */
  close(): Promise<void>;
};

/** Throws ConfigError when an endpoint is no http(s) URL. */
export function wantsTracing(environment: Environment): boolean {
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

/** `serviceName` counts unless OTEL_SERVICE_NAME says otherwise. Rejects with ConfigError as `wantsTracing` does. */
export async function startTracing(
  serviceName: string,
  environment: Environment,
  { clock, log }: { clock: Clock; log: Log },
): Promise<Tracing> {
  if (!wantsTracing(environment)) return { close: async () => undefined };
  const { createOtlpTracer } = await import('./otlp-tracer.ts');
  const { tracer, close } = createOtlpTracer(serviceName, log);
  traceWith(tracer);
  return {
    async close() {
      traceWith(null);
      await withDeadline(clock, CLOSE_WITHIN_MS, close()).catch(() => undefined);
    },
  };
}
