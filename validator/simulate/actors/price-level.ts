/** Prices relative to those at the start, to which demand reacts. */

export type PriceLevel = {
  /** Adds a host at its first price. */
  add(gpu: string): void;
  /** Changes the price of a host, relative to its first price. */
  change(gpu: string, byShare: number): void;
  /** Returns the mean of current to first price over the hosts with this GPU, or over all hosts; 1 without hosts. */
  of(gpu: string | undefined): number;
};

type Sum = { hosts: number; shares: number };

export function createPriceLevel(): PriceLevel {
  const all: Sum = { hosts: 0, shares: 0 };
  const byGpu = new Map<string, Sum>();

  function sumOf(gpu: string): Sum {
    const known = byGpu.get(gpu) ?? { hosts: 0, shares: 0 };
    byGpu.set(gpu, known);
    return known;
  }

  return {
    add(gpu) {
      for (const sum of [all, sumOf(gpu)]) {
        sum.hosts += 1;
        sum.shares += 1;
      }
    },
    change(gpu, byShare) {
      for (const sum of [all, sumOf(gpu)]) sum.shares += byShare;
    },
    of(gpu) {
      const { hosts, shares } = gpu === undefined ? all : (byGpu.get(gpu) ?? all);
      return hosts === 0 ? 1 : shares / hosts;
    },
  };
}

/**
 * Returns the factor of the pause between two jobs: with an elasticity of 1, twice the price doubles it. The number of
 * jobs changes inversely.
 */
export const pauseFactor = (priceLevel: number, elasticity: number): number =>
  priceLevel ** elasticity;
