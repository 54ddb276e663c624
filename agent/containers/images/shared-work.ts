/** Work with several waiters: starts with the first and is aborted when the last one leaves. */
type Running<Progress> = {
  done: Promise<void>;
  listeners: Set<(progress: Progress) => void>;
  abort: AbortController;
};

/** Runs the work of each key at most once at a time. */
export function createSharedWork<Progress>() {
  const running = new Map<string, Running<Progress>>();

  /** Removes the entry only if it is `which`: the key may have started again while aborted work was still ending. */
  function forget(key: string, which: Running<Progress>): void {
    if (running.get(key) === which) running.delete(key);
  }

  function begin(
    key: string,
    work: (report: (progress: Progress) => void, signal: AbortSignal) => Promise<void>,
  ): Running<Progress> {
    const listeners: Running<Progress>['listeners'] = new Set();
    const abort = new AbortController();
    const report = (progress: Progress) => {
      for (const listener of listeners) listener(progress);
    };
    const done = work(report, abort.signal).finally(() => forget(key, fresh));
    const fresh = { done, listeners, abort };
    running.set(key, fresh);
    return fresh;
  }

  return {
    /** Settles as the work does; rejects with the reason of `signal` if that aborts first. */
    async join(
      key: string,
      work: (report: (progress: Progress) => void, signal: AbortSignal) => Promise<void>,
      onProgress: (progress: Progress) => void,
      signal: AbortSignal,
    ): Promise<void> {
      const shared = running.get(key) ?? begin(key, work);
      const listener = (progress: Progress) => onProgress(progress);
      shared.listeners.add(listener);
      try {
        await new Promise<void>((resolve, reject) => {
          if (signal.aborted) reject(signal.reason);
          signal.addEventListener('abort', () => reject(signal.reason), { once: true });
          shared.done.then(resolve, reject);
        });
      } finally {
        shared.listeners.delete(listener);
        if (shared.listeners.size === 0) {
          forget(key, shared);
          shared.abort.abort();
        }
      }
    },
  };
}
