/**
 * The life of a process. After its end nothing that it began returns, and its timers do not fire, as after `kill -9`:
 * the program stops at the operation that it waits for.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import { deadlineAfter } from '../time/deadline.ts';

export type Life = {
  /** The clock of the process. */
  clock: Clock;
  /** Returns the port with functions whose promises remain pending after the end of the life. */
  guard<T extends object>(port: T): T;
  /** Returns the result for a client of the process: rejects with ConnectionLost at the end of the life. */
  serve<T>(work: Promise<T>): Promise<T>;
  /** Calls `run` at the end of the life, such as to close connections. */
  onEnd(run: () => void): void;
  end(): void;
};

/** The process ended while it worked on a request. */
export class ConnectionLost extends Error {
  override name = 'ConnectionLost';
}

/** Each caller gets its own promise: a common one would retain all that waits for ended processes. */
const never = () => new Promise<never>(() => undefined);

export function beginLife(clock: Clock): Life {
  /** Requests of clients that wait for an answer. */
  const waiting = new Set<(error: ConnectionLost) => void>();
  const endings: (() => void)[] = [];
  let isOver = false;

  const afterUnlessOver = (ms: number, run: () => void) =>
    void clock.sleep(ms).then(() => {
      if (!isOver) run();
    });

  const alive = <T>(work: Promise<T>): Promise<T> =>
    new Promise((onValue, onError) => {
      work.then(
        (value) => {
          if (!isOver) onValue(value);
        },
        (error: unknown) => {
          if (!isOver) onError(error);
        },
      );
    });

  return {
    clock: {
      now: clock.now,
      monotonicMs: clock.monotonicMs,
      sleep: (ms, signal) => alive(clock.sleep(ms, signal)),
      deadline: (ms, parent) => deadlineAfter(afterUnlessOver, ms, parent),
    },
    guard: (port) =>
      new Proxy(port, {
        get(target, name) {
          const member: unknown = Reflect.get(target, name);
          if (typeof member !== 'function') return member;
          return (...args: unknown[]): unknown => {
            if (isOver) return never();
            const result: unknown = Reflect.apply(member, target, args);
            return result instanceof Promise ? alive(result) : result;
          };
        },
      }),
    serve: (work) =>
      new Promise((onValue, onError) => {
        waiting.add(onError);
        const settled = () => void waiting.delete(onError);
        work.finally(settled).then(onValue, onError);
      }),
    onEnd: (run) => void endings.push(run),
    end() {
      isOver = true;
      for (const run of endings) run();
      for (const reject of waiting) reject(new ConnectionLost('the process was killed'));
      waiting.clear();
    },
  };
}
