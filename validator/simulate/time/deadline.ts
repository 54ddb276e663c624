/** Deadlines of requests. Most requests end long before, so a deadline costs little until it passes. */

/** Calls `run` after `ms`. */
type After = (ms: number, run: () => void) => void;

const PASSED = new DOMException('the deadline has passed', 'TimeoutError');

/**
 * Returns a signal that aborts after `ms`, or with `parent`. `AbortSignal.any` would hold weak references, which burden
 * the garbage collector: an inspection has dozens of deadlines.
 */
export function deadlineAfter(after: After, ms: number, parent?: AbortSignal): AbortSignal {
  if (parent?.aborted === true) return parent;
  const timeout = new AbortController();
  const follow = () => timeout.abort(parent?.reason);
  parent?.addEventListener('abort', follow, { once: true });
  after(ms, () => {
    parent?.removeEventListener('abort', follow);
    timeout.abort(PASSED);
  });
  return timeout.signal;
}
