/** How much room there is: connections that have not logged in, sessions per pod and in all. */

export type Counter = {
  /** False when there is no room for `owner`. */
  take(owner: string): boolean;
  release(owner: string): void;
};

export type Seats = { waiting: Counter; sessions: Counter };

/** Connections of one address, and of all, that have not logged in yet. */
export const MAX_WAITING_PER_ADDRESS = 30;
export const MAX_WAITING = 100;
/** Logged-in connections per pod and on this host (agent reference 12.1). */
export const MAX_SESSIONS_PER_POD = 10;
export const MAX_SESSIONS = 200;

/** All empty. */
export function createSeats(): Seats {
  return {
    waiting: createCounter(MAX_WAITING_PER_ADDRESS, MAX_WAITING),
    sessions: createCounter(MAX_SESSIONS_PER_POD, MAX_SESSIONS),
  };
}

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
