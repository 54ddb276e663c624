/** Observes the engine through the agent's own calls: whether it answers, and how long its calls take. */
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

/**
 * Wall-clock interval in which the engine did not answer. Containers that ended in it were ended by the engine's
 * restart.
 */
export type Outage = { fromMs: number; toMs: number };

/** Errors that mean that the engine does not answer. A list call that exceeds its deadline is one of them. */
const SILENT: readonly EngineErrorKind[] = ['unavailable', 'deadline'];

/** Creates the record of the engine's health. The engine counts as answering until the first failure. */
export function createEngineHealth(deps: {
  engine: Pick<ContainerEngine, 'listContainers' | 'startedMs'>;
  clock: Clock;
  log: Log;
}) {
  const { engine, clock, log } = deps;
  let away: string | null = null;
  let answeredMs = 0;
  let outage: Outage | null = null;

  /**
   * Returns the outage before the agent's first answer from the engine. It ends with the engine's last start:
   * containers that ended before that start count as ended by the engine's restart.
   */
  async function findFirstOutage(): Promise<Outage> {
    return { fromMs: 0, toMs: await engine.startedMs() };
  }

  function answered(): void {
    const nowMs = clock.now();
    if (away !== null) {
      log.info('Docker engine answers again');
      outage = { fromMs: answeredMs, toMs: nowMs };
    }
    away = null;
    answeredMs = nowMs;
  }

  function lost(message: string): void {
    if (away === null) log.warn({ detail: message }, 'Docker engine does not answer');
    away = message;
  }

  return {
    answered,
    lost,
    /** Error of the last call while the engine does not answer, otherwise null. */
    awayBecause: () => away,
    /** The last outage. Valid after the first `listContainers`. */
    lastOutage: (): Outage => outage ?? { fromMs: 0, toMs: 0 },
    /** Lists containers and records whether the engine answered. */
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

/** Called after each call; `code` is `ok` or the kind of the engine's error. */
export type OnEngineCall = (op: string, code: string, tookMs: number) => void;

/** Calls without a duration metric, because they wait for pods, registries and builds. */
const UNTIMED: ReadonlySet<string> = new Set(['waitContainer', 'pullImage', 'buildImage']);

/** Wraps an engine: reports outcome and duration of each call and opens a trace span. Streams are passed through. */
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
        const finish = (code: string) => {
          onCall(op, code, clock.monotonicMs() - beganMs);
          span?.end(code === 'ok' ? null : code);
        };
        answer.then(
          () => finish('ok'),
          (error: unknown) => finish(error instanceof EngineError ? error.kind : 'internal'),
        );
        return answer;
      };
      timed.set(op, measured);
      return measured;
    },
  });
}
