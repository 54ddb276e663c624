/**
 * Holds the results of operations until nothing else can run, and releases them one at a time in the order of their
 * requests. A result from memory and one from a server then arrive at the same point of the program.
 */

export type Gate = {
  /** Begins an operation at once. Its result arrives when `release` reaches it. */
  pass<T>(operation: () => Promise<T>): Promise<T>;
  /** Waits for the oldest operation, and delivers its result. Returns false if there is none. */
  release(): Promise<boolean>;
};

export function createGate(): Gate {
  /** Each resolves with the function that delivers the result. */
  let waiting: Promise<() => void>[] = [];
  let first = 0;

  return {
    pass: <T>(operation: () => Promise<T>) =>
      new Promise<T>((resolve, reject) => {
        const ended = operation().then(
          (value) => () => resolve(value),
          (error: unknown) => () => reject(error),
        );
        waiting.push(ended);
      }),
    async release() {
      const oldest = waiting[first];
      if (oldest === undefined) return false;
      first += 1;
      if (first === waiting.length) [waiting, first] = [[], 0];
      (await oldest)();
      return true;
    },
  };
}
