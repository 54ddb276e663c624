/**
 * Counts the work of this process that ends outside JavaScript: hashes, signatures and files in the thread pool. The
 * order in which such work ends is not determined, so time may not pass meanwhile.
 */
import { createHook } from 'node:async_hooks';

/** Kinds of resources that exist for one request: `ARGON2REQUEST`, `SIGNREQUEST`, `FSREQPROMISE` … */
const REQUEST = /REQUEST$|^FSREQ|REQWRAP$/;

/** Promises are not tracked, because they end within JavaScript. The types of Node lack this option. */
const HOOK_OPTIONS = { trackPromises: false };

export type OutsideWork = {
  /** Returns true while work is unfinished. */
  isPending(): boolean;
  stop(): void;
};

/** Starts counting. Requests that began earlier are not counted. */
export function trackOutsideWork(): OutsideWork {
  const pending = new Set<number>();
  const hook = createHook({
    ...HOOK_OPTIONS,
    init(id, type) {
      if (REQUEST.test(type)) pending.add(id);
    },
    before: (id) => void pending.delete(id),
    destroy: (id) => void pending.delete(id),
  });
  hook.enable();
  return { isPending: () => pending.size > 0, stop: () => void hook.disable() };
}
