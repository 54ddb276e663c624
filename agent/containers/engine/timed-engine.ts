/** The engine as it is, with each call's outcome and duration told to somebody, and a span of its own. */
import type { Clock } from '#shared/runtime/clock.ts';
import { currentTraceparent, openSpan, within } from '#shared/telemetry/tracing.ts';
import { type ContainerEngine, EngineError } from './engine.ts';

/** `code` is `ok`, or the kind of the engine's error. */
export type OnEngineCall = (op: string, code: string, tookMs: number) => void;

/** How long these take is not the engine's affair: they wait for pods, registries and builds. */
const UNTIMED: ReadonlySet<string> = new Set(['waitContainer', 'pullImage', 'buildImage']);

/** Streams are handed on as they are. */
export function timedEngine(
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
        const answer: unknown = within(span, () => Reflect.apply(method, target, args));
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
