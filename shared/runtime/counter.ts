/** Room that several owners share: so much for each, so much for all. */

export type Counter = {
  /** False when there is no room for `owner`. */
  take(owner: string): boolean;
  release(owner: string): void;
};

/** Counts what each owner holds; releasing more than was taken is harmless. */
export function createCounter(perOwner: number, total: number): Counter {
  const held = new Map<string, number>();
  let sum = 0;
  return {
    take(owner) {
      const own = held.get(owner) ?? 0;
      if (own >= perOwner || sum >= total) return false;
      held.set(owner, own + 1);
      sum += 1;
      return true;
    },
    release(owner) {
      const own = held.get(owner) ?? 0;
      if (own === 0) return;
      sum -= 1;
      if (own === 1) held.delete(owner);
      else held.set(owner, own - 1);
    },
  };
}
