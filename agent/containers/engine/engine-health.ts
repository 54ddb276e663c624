/** Whether the engine answers, and since when, as the agent's own calls find out; there is no extra polling. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { currentTraceparent, openSpan, withSpan } from '#shared/telemetry/tracing.ts';
import {
  type ContainerEngine,
  type ContainerState,
  EngineError,
  type EngineErrorKind,
} from './engine.ts';

export type EngineHealth = ReturnType<typeof createEngineHealth>;

/** Wall clock, as the times of containers are. What ended in it was ended by the engine's restart. */
export type Outage = { fromMs: number; toMs: number };

/** A list that takes longer than its deadline is no answer either. */
const SILENT: readonly EngineErrorKind[] = ['unavailable', 'deadline'];

/** Answers until the first report. */
export function createEngineHealth(deps: {
  engine: Pick<ContainerEngine, 'listContainers' | 'startedMs'>;
  clock: Clock;
  log: Log;
}) {
  const { engine, clock, log } = deps;
  let away: string | null = null;
  let answeredMs = 0;
  let outage: Outage | null = null;

  /** Before the first answer nobody has watched: all that ended before the engine's start counts. */
  async function findFirstOutage(): Promise<Outage> {
    return { fromMs: 0, toMs: await engine.startedMs() };
  }

  function answered(): void {
    const nowMs = clock.now();
    if (away !== null) {
      log.info('the Docker engine answers again');
      outage = { fromMs: answeredMs, toMs: nowMs };
    }
    away = null;
    answeredMs = nowMs;
  }

  function lost(message: string): void {
    if (away === null) log.warn({ detail: message }, 'the Docker engine does not answer');
    away = message;
  }

  return {
    answered,
    lost,
    /** Why it does not answer; null while it does. */
    awayBecause: () => away,
    /** The last time that it was away; meaningful after a `listContainers`. */
    lastOutage: (): Outage => outage ?? { fromMs: 0, toMs: 0 },
    /** The engine's own, with what its answer or silence says of the engine noted. */
    async listContainers(labels: Record<string, string>): Promise<ContainerState[]> {
      try {
        outage ??= await findFirstOutage();
        const found = await engine.listContainers(labels);
        answered();
        return found;
      } catch (error) {
        if (error instanceof EngineError && SILENT.includes(error.kind)) lost(error.message);
        throw error;
      }
    },
  };
}

// MERGED agent/containers/engine/engine-health.ts: The engine as it is, with each call's outcome and duration told to somebody, and a span of its own.
/** `code` is `ok`, or the kind of the engine's error. */
export type OnEngineCall = (op: string, code: string, tookMs: number) => void;

/** How long these take is not the engine's affair: they wait for pods, registries and builds. */
const UNTIMED: ReadonlySet<string> = new Set(['waitContainer', 'pullImage', 'buildImage']);

/** Streams are handed on as they are. */
export function observedEngine(
  engine: ContainerEngine,
  clock: Clock,
  onCall: OnEngineCall,
): ContainerEngine {
  const timed = new Map<PropertyKey, unknown>();
  return new Proxy(engine, {
    get(target, op) {
      const known = timed.get(op);
      if (known !== undefined) return known;
      const method: unknown = Reflect.get(target, op);
      if (typeof method !== 'function' || typeof op !== 'string' || UNTIMED.has(op)) return method;
      const measured = (...args: unknown[]) => {
        const beganMs = clock.monotonicMs();
        const span =
          currentTraceparent() === null ? null : openSpan({ name: `engine ${op}`, kind: 'client' });
        const answer: unknown = withSpan(span, () => Reflect.apply(method, target, args));
        if (!(answer instanceof Promise)) {
          span?.end(null);
          return answer;
        }
        const note = (code: string) => {
          onCall(op, code, clock.monotonicMs() - beganMs);
          span?.end(code === 'ok' ? null : code);
        };
        answer.then(
          () => note('ok'),
          (error: unknown) => note(error instanceof EngineError ? error.kind : 'internal'),
        );
        return answer;
      };
      timed.set(op, measured);
      return measured;
    },
  });
}
