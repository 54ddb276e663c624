/** How a process that serves is told to end. */

/** Calls `stop` at a SIGINT or SIGTERM, once for each, and ends the process after it; `failed` notes its failure in the exit status. */
export function stopOnSignal(stop: () => Promise<void>, failed: (error: unknown) => void): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    // What an exporter of spans still tries would keep the process.
    process.once(
      signal,
      () =>
        void stop()
          .catch(failed)
          .finally(() => process.exit()),
    );
  }
}
