/**
 * Counts the work of this process that ends outside JavaScript: hashes, signatures and files in the thread pool. The
 * order in which such work ends is not determined, so time may not pass meanwhile.
 */
import { createHook } from 'node:async_hooks';

/** Kinds of resources that exist for one request: `ARGON2REQUEST`, `SIGNREQUEST`, `FSREQPROMISE` … */
const REQUEST = /REQUEST$|^FSREQ|REQWRAP$/;
/** Requests that always end in the thread pool: files, and the signatures of WebCrypto, which have no callback. */
const ALWAYS_OUTSIDE = /^FSREQ|REQWRAP$|^SIGNREQUEST$/;

/** Promises are not tracked, because they end within JavaScript. The types of Node lack this option. */
const HOOK_OPTIONS = { trackPromises: false };

export type OutsideWork = {
  /** Returns true while work is unfinished. Call it from a new turn of the event loop. */
  isPending(): boolean;
  stop(): void;
};

/** Starts counting. Requests that began earlier are not counted. */
export function trackOutsideWork(): OutsideWork {
  const pending = new Map<number, object>();
  const hook = createHook({
    ...HOOK_OPTIONS,
    init(id, type, _trigger, resource) {
      if (REQUEST.test(type)) pending.set(id, ALWAYS_OUTSIDE.test(type) ? IN_POOL : resource);
    },
    before: (id) => void pending.delete(id),
  });
  hook.enable();

  /** Other jobs of node:crypto without a callback run synchronously, and have ended when the event loop turns. */
  function dropSynchronous(): void {
    for (const [id, job] of pending) {
      if (job !== IN_POOL && !('ondone' in job && typeof job.ondone === 'function'))
        pending.delete(id);
    }
  }

  return {
    isPending() {
      if (pending.size === 0) return false;
      dropSynchronous();
      return pending.size > 0;
    },
    stop: () => void hook.disable(),
  };
}

/** Marks a request that always ends in the thread pool. */
const IN_POOL = {};
