/** Functions that run when a signal aborts. */

/** Calls `run` when the signal aborts. Returns the function that prevents it. */
export type OnAbort = (signal: AbortSignal, run: () => void) => () => void;

/**
 * A signal compares each new listener with all that it has, so thousands of actors that sleep with one signal share one
 * listener.
 */
export function createAbortHooks(): OnAbort {
  const hooks = new WeakMap<AbortSignal, Set<() => void>>();

  function hooksOf(signal: AbortSignal): Set<() => void> {
    const known = hooks.get(signal);
    if (known !== undefined) return known;
    const added = new Set<() => void>();
    hooks.set(signal, added);
    signal.addEventListener('abort', () => runAll(added), { once: true });
    return added;
  }

  return (signal, run) => {
    const all = hooksOf(signal);
    all.add(run);
    return () => void all.delete(run);
  };
}

function runAll(hooks: Set<() => void>): void {
  for (const run of hooks) run();
  hooks.clear();
}
