/** Binary heap of timers: the earliest first, and among equal times the one that was added first. */

export type Timer = {
  dueMs: number;
  /** Order of addition. */
  sequence: number;
  /** Runs when the timer is due; null after a cancellation. */
  run: (() => void) | null;
};

export type EventHeap = ReturnType<typeof createEventHeap>;

/** Share of cancelled timers above which the heap is rebuilt without them. */
const MAX_CANCELLED_SHARE = 0.5;
const MIN_REBUILD = 1_024;

export function createEventHeap() {
  let timers: Timer[] = [];
  let sequence = 0;
  let cancelled = 0;

  function siftUp(from: number): void {
    const timer = timers[from] as Timer;
    let at = from;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const other = timers[parent] as Timer;
      if (!isBefore(timer, other)) break;
      timers[at] = other;
      at = parent;
    }
    timers[at] = timer;
  }

  function siftDown(from: number): void {
    const timer = timers[from] as Timer;
    let at = from;
    for (;;) {
      let child = 2 * at + 1;
      const left = timers[child];
      if (left === undefined) break;
      const right = timers[child + 1];
      let least = left;
      if (right !== undefined && isBefore(right, left)) {
        least = right;
        child += 1;
      }
      if (!isBefore(least, timer)) break;
      timers[at] = least;
      at = child;
    }
    timers[at] = timer;
  }

  function removeFirst(): Timer | undefined {
    const [first] = timers;
    const last = timers.pop();
    if (first === undefined || last === undefined) return undefined;
    if (timers.length > 0) {
      timers[0] = last;
      siftDown(0);
    }
    return first;
  }

  /** Most timers are limits of requests that end in time, so cancelled timers would fill the heap. */
  function rebuild(): void {
    if (cancelled < MIN_REBUILD || cancelled < timers.length * MAX_CANCELLED_SHARE) return;
    timers = timers.filter(({ run }) => run !== null);
    cancelled = 0;
    for (let at = (timers.length >> 1) - 1; at >= 0; at -= 1) siftDown(at);
  }

  function dropCancelled(): void {
    while (timers.length > 0 && timers[0]?.run === null) {
      removeFirst();
      cancelled -= 1;
    }
  }

  return {
    /** Adds a timer, and returns the function that cancels it. */
    add(dueMs: number, run: () => void): () => void {
      sequence += 1;
      const timer: Timer = { dueMs, sequence, run };
      timers.push(timer);
      siftUp(timers.length - 1);
      return () => {
        if (timer.run === null) return;
        timer.run = null;
        cancelled += 1;
        rebuild();
      };
    },

    /** Returns the time of the earliest timer; null if there is none. */
    nextMs(): number | null {
      dropCancelled();
      return timers[0]?.dueMs ?? null;
    },

    /** Removes the earliest timer, and returns its function; null if there is none. */
    take(): { dueMs: number; run(): void } | null {
      dropCancelled();
      const timer = removeFirst();
      if (timer === undefined || timer.run === null) return null;
      const { dueMs, run } = timer;
      // A later cancellation must not count a timer that has left the heap.
      timer.run = null;
      return { dueMs, run };
    },

    size: (): number => timers.length - cancelled,
  };
}

const isBefore = (a: Timer, b: Timer): boolean =>
  a.dueMs < b.dueMs || (a.dueMs === b.dueMs && a.sequence < b.sequence);
