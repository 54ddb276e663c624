/**
 * Counts the work of this process that is not finished when the event loop turns: callbacks of setImmediate, and work
 * that ends outside JavaScript, such as hashes, signatures and files in the thread pool. The order in which the latter
 * ends is not determined, so time may not pass meanwhile.
 */
import { createHook } from 'node:async_hooks';

/** Kinds of resources that exist for one request: `ARGON2REQUEST`, `SIGNREQUEST`, `FSREQPROMISE` … */
const REQUEST = /REQUEST$|^FSREQ|REQWRAP$/;
/** Requests that always end in the thread pool: files, and the signatures of WebCrypto, which have no callback. */
const ALWAYS_OUTSIDE = /^FSREQ|REQWRAP$|^SIGNREQUEST$/;
const IMMEDIATE = 'Immediate';

type Kind = 'ignored' | 'immediate' | 'pool' | 'job';

function kindOf(type: string): Kind {
  if (type === IMMEDIATE) return 'immediate';
  if (!REQUEST.test(type)) return 'ignored';
  return ALWAYS_OUTSIDE.test(type) ? 'pool' : 'job';
}

/** Promises are not tracked, because they end within JavaScript. The types of Node lack this option. */
const HOOK_OPTIONS = { trackPromises: false };

export type OutsideWork = {
  /** Returns true while work is unfinished. Call it from a new turn of the event loop. */
  isPending(): boolean;
  stop(): void;
};

/** Starts counting. Work that began earlier is not counted. */
export function trackOutsideWork(): OutsideWork {
  const kinds = new Map<string, Kind>();
  const immediates = new Set<number>();
  /** Requests by id. Null: the request always ends in the thread pool. */
  const requests = new Map<number, object | null>();
  const hook = createHook({
    ...HOOK_OPTIONS,
    init(id, type, _trigger, resource) {
      let kind = kinds.get(type);
      if (kind === undefined) {
        kind = kindOf(type);
        kinds.set(type, kind);
      }
      if (kind === 'immediate') immediates.add(id);
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

  return {
    isPending() {
      if (immediates.size > 0) dropCancelled();
      if (requests.size > 0) dropSynchronous();
      return immediates.size > 0 || requests.size > 0;
    },
    stop: () => void hook.disable(),
  };
}
