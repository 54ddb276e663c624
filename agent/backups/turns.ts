/**
 * Queue of a host's operations: selects which waiting operation begins next. A renter has at most one running
 * operation, and renters without a pod on the host leave one place to the others, so that neither many nor endless
 * operations of one renter keep other renters waiting.
 */
import type { Clock } from '#shared/runtime/clock.ts';

/** A waiting or running operation. */
export type Waiter = {
  id: string;
  /** Key of the renter; of the operations with the same key, one runs at a time. */
  renter: string;
  /** True if the renter has a pod on this host. */
  isPresent: boolean;
  /** Monotonic time of its arrival. */
  sinceMs: number;
};

/** Waiting time after which an operation of a renter without a pod has the priority of a present renter's. */
const MOST_WAIT_MS = 2 * 3_600_000;

type Facts = {
  limit: number;
  running: readonly Waiter[];
  /** Renters in the order in which their last operation began, the latest last. */
  served: readonly string[];
  nowMs: number;
};

/**
 * Orders the waiting operations: present renters first, then the renter whose last operation began longest ago, then
 * by arrival.
 */
export function inOrder(
  waiting: readonly Waiter[],
  { served, nowMs }: Pick<Facts, 'served' | 'nowMs'>,
): Waiter[] {
  const isFirst = ({ isPresent, sinceMs }: Waiter) => isPresent || nowMs - sinceMs >= MOST_WAIT_MS;
  return waiting.toSorted(
    (a, b) =>
      Number(isFirst(b)) - Number(isFirst(a)) ||
      served.lastIndexOf(a.renter) - served.lastIndexOf(b.renter) ||
      a.sinceMs - b.sinceMs,
  );
}

/** Returns the operation that may begin now; null if there is none. Pure. */
export function nextInTurn(waiting: readonly Waiter[], facts: Facts): Waiter | null {
  const { limit, running } = facts;
  if (running.length >= limit) return null;
  return inOrder(waiting, facts).find((waiter) => obstacleOf(waiter, facts) === null) ?? null;
}

/** Returns why the operation may not begin although a place is free; null if it may. */
function obstacleOf({ renter, isPresent }: Waiter, { limit, running }: Facts): string | null {
  if (running.some((other) => other.renter === renter)) {
    return 'Another backup or restore of this account runs on the node, which runs one of each account at a time';
  }
  const departed = running.filter((other) => !other.isPresent).length;
  if (isPresent || limit === 1 || departed < limit - 1) return null;
  return 'The node keeps a place free for accounts that have a pod on it';
}

export type Turns = ReturnType<typeof createTurns>;

export function createTurns(limit: number, clock: Clock) {
  const running: Waiter[] = [];
  const waiting = new Map<Waiter, () => void>();
  let served: string[] = [];

  const facts = (): Facts => ({ limit, running, served, nowMs: clock.monotonicMs() });

  function advance(): void {
    for (;;) {
      const next = nextInTurn([...waiting.keys()], facts());
      if (next === null) return;
      const enter = waiting.get(next);
      waiting.delete(next);
      running.push(next);
      served = [...served.filter((renter) => renter !== next.renter), next.renter];
      enter?.();
    }
  }

  function acquire(waiter: Waiter, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const leave = () => {
        if (waiting.delete(waiter)) reject(signal.reason);
      };
      signal.addEventListener('abort', leave, { once: true });
      waiting.set(waiter, () => {
        signal.removeEventListener('abort', leave);
        resolve();
      });
      advance();
    });
  }

  return {
    /** Runs `work` when it is the operation's turn. Rejects if the signal aborts while it waits. */
    async run(
      what: Omit<Waiter, 'sinceMs'>,
      work: () => Promise<void>,
      signal: AbortSignal,
    ): Promise<void> {
      const waiter = { ...what, sinceMs: clock.monotonicMs() };
      await acquire(waiter, signal);
      try {
        await work();
      } finally {
        running.splice(running.indexOf(waiter), 1);
        // Forgets renters without an operation once no operation waits.
        const known = new Set([...running, ...waiting.keys()].map(({ renter }) => renter));
        if (waiting.size === 0) served = served.filter((renter) => known.has(renter));
        advance();
      }
    },

    /** Returns why the operation waits, as a sentence for its renter; null if it does not wait. */
    reasonOf(id: string): string | null {
      const order = inOrder([...waiting.keys()], facts());
      const at = order.findIndex((waiter) => waiter.id === id);
      const waiter = order[at];
      if (waiter === undefined) return null;
      const own = obstacleOf(waiter, facts());
      if (own !== null) return own;
      const ahead = at === 0 ? 'this one is next' : `${at} wait before this one`;
      return `The node runs at most ${limit} at a time for its accounts in turn; ${ahead}`;
    },
  };
}
