/**
 * Counts the work of this process that is not finished when no promise is left to run: callbacks of setImmediate, and
 * work that ends outside JavaScript, such as hashes, signatures and files in the thread pool. The order in which the
 * latter ends is not determined, so time may not pass meanwhile.
 */
import { createHook } from 'node:async_hooks';

/** Kinds of resources that exist for one request: `ARGON2REQUEST`, `SIGNREQUEST`, `FSREQPROMISE` … */
const REQUEST = /REQUEST$|^FSREQ|REQWRAP$/;
/** Requests that always end in the thread pool: files, and the signatures of WebCrypto, which have no callback. */
const ALWAYS_OUTSIDE = /^FSREQ|REQWRAP$|^SIGNREQUEST$/;
const IMMEDIATE = 'Immediate';
const TICK = 'TickObject';

type Kind = 'ignored' | 'tick' | 'immediate' | 'pool' | 'job';

function kindOf(type: string): Kind {
  if (type === TICK) return 'tick';
  if (type === IMMEDIATE) return 'immediate';
  if (!REQUEST.test(type)) return 'ignored';
  return ALWAYS_OUTSIDE.test(type) ? 'pool' : 'job';
}

/** Promises are not tracked, because they end within JavaScript. The types of Node lack this option. */
const HOOK_OPTIONS = { trackPromises: false };

export type OutsideWork = {
  /** Resolves in the next turn of the event loop, in which results from outside arrive. */
  turn(): Promise<void>;
  /** Resolves when no promise and no callback of process.nextTick is left to run. Takes half of the time of a turn. */
  drain(): Promise<void>;
  /** Returns true while work is unfinished. Call it after `turn` or `drain`. */
  isPending(): boolean;
  stop(): void;
};

/** Starts counting. Work that began earlier is not counted. */
export function trackOutsideWork(): OutsideWork {
  const kinds = new Map<string, Kind>();
  const immediates = new Set<number>();
  /** Requests by id. Null: the request always ends in the thread pool. */
  const requests = new Map<number, object | null>();
  /** Callbacks of process.nextTick that were added, and their number when nothing else could run for the last time. */
  let ticks = 0;
  let ticksAtRest = 0;
  const hook = createHook({
    ...HOOK_OPTIONS,
    init(id, type, _trigger, resource) {
      let kind = kinds.get(type);
      if (kind === undefined) {
        kind = kindOf(type);
        kinds.set(type, kind);
      }
      if (kind === 'tick') ticks += 1;
      else if (kind === 'immediate') immediates.add(id);
      else if (kind !== 'ignored') requests.set(id, kind === 'pool' ? null : resource);
    },
    before(id) {
      if (!immediates.delete(id)) requests.delete(id);
    },
  });
  hook.enable();

  /** Other jobs of node:crypto without a callback run synchronously, and have ended when the event loop turns. */
  function dropSynchronous(): void {
    for (const [id, job] of requests) {
      if (job !== null && !('ondone' in job && typeof job.ondone === 'function'))
        requests.delete(id);
    }
  }

  /** Callbacks that were cancelled never begin. */
  function dropCancelled(): void {
    if (!process.getActiveResourcesInfo().includes(IMMEDIATE)) immediates.clear();
  }

  /**
   * Resolves with true if nothing but this callback was added since the last call. Then it ran alone, after all
   * promises.
   */
  const isLastTick = () =>
    new Promise<boolean>((resolve) => {
      process.nextTick(() => {
        const isAlone = ticks === ticksAtRest + 1;
        ticksAtRest = ticks;
        resolve(isAlone);
      });
    });

  return {
    turn: () =>
      new Promise((resolve) => {
        setImmediate(() => {
          ticksAtRest = ticks;
          resolve();
        });
      }),
    async drain() {
      while (!(await isLastTick())) {
        // Another callback ran, which may have added promises.
      }
    },
    isPending() {
      if (immediates.size > 0) dropCancelled();
      if (requests.size > 0) dropSynchronous();
      return immediates.size > 0 || requests.size > 0;
    },
    stop: () => void hook.disable(),
  };
}
