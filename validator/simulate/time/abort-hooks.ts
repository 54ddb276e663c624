/** Functions that run when a signal aborts. */

/** Calls `run` when the signal aborts. Returns the function that prevents it. */
export type OnAbort = (signal: AbortSignal, run: () => void) => () => void;

/** Functions of one signal, and the listener that calls them. */
type Hooks = { all: Set<() => void>; listener: () => void };

/**
 * A signal compares each new listener with all that it has, so thousands of actors that sleep with one signal share one
 * listener. The listener is removed with the last function, because Node retains signals of `AbortSignal.any` as long as
 * they have one.
 */
export function createAbortHooks(): OnAbort {
  const hooks = new WeakMap<AbortSignal, Hooks>();

  function hooksOf(signal: AbortSignal): Hooks {
    const known = hooks.get(signal);
    if (known !== undefined) return known;
    const all = new Set<() => void>();
    const added = { all, listener: () => runAll(all) };
    hooks.set(signal, added);
    signal.addEventListener('abort', added.listener, { once: true });
    return added;
  }

  return (signal, run) => {
    const { all, listener } = hooksOf(signal);
    all.add(run);
    return () => {
      all.delete(run);
      if (all.size > 0 || hooks.get(signal)?.all !== all) return;
      hooks.delete(signal);
      signal.removeEventListener('abort', listener);
    };
  };
}

function runAll(hooks: Set<() => void>): void {
  for (const run of hooks) run();
  hooks.clear();
}
