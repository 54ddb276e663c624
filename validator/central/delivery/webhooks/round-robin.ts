/** Turns that run at the same time, so many in all and so many of one owner: nobody's slow ones take every place. */

export type Turns = ReturnType<typeof createTurns>;

/** Each turn has an id, and no two run under the same. */
export function createTurns({ most, mostOfOwner }: { most: number; mostOfOwner: number }) {
  const running = new Map<string, { owner: string; ended: Promise<void> }>();
  const countOf = (owner: string) =>
    running.values().reduce((count, turn) => count + (turn.owner === owner ? 1 : 0), 0);

  return {
    isFull: () => running.size >= most,

    /** Begins `work`, which never rejects; false when there is no place for it, or it runs already. */
    begin({ id, owner }: { id: string; owner: string }, work: () => Promise<void>): boolean {
      if (running.has(id) || running.size >= most || countOf(owner) >= mostOfOwner) return false;
      const ended = work().finally(() => running.delete(id));
      running.set(id, { owner, ended });
      return true;
    },

    /** Resolves when those that run now have ended. */
    async ended(): Promise<void> {
      await Promise.all([...running.values()].map((turn) => turn.ended));
    },
  };
}
