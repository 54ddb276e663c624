/** Concurrent turns, limited in total and per owner, so that slow turns of one owner do not block the others. */

export type RoundRobin = ReturnType<typeof createRoundRobin>;

/** Creates the scheduler. Turns have ids; two turns with the same id never run at the same time. */
export function createRoundRobin({ most, mostOfOwner }: { most: number; mostOfOwner: number }) {
  const running = new Map<string, { owner: string; ended: Promise<void> }>();
  const countOf = (owner: string) =>
    running.values().reduce((count, turn) => count + (turn.owner === owner ? 1 : 0), 0);

  return {
    isFull: () => running.size >= most,

    /** Starts `work`, which must not reject. Returns false if a limit is reached or the id is running. */
    begin({ id, owner }: { id: string; owner: string }, work: () => Promise<void>): boolean {
      if (running.has(id) || running.size >= most || countOf(owner) >= mostOfOwner) return false;
      const ended = work().finally(() => running.delete(id));
      running.set(id, { owner, ended });
      return true;
    },

    /** Resolves when all running turns have ended. */
    async ended(): Promise<void> {
      await Promise.all([...running.values()].map((turn) => turn.ended));
    },
  };
}
