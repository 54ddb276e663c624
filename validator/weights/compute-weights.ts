/**
 * Computes weights from stored cycles and a policy. Pure, in integers only: no clock, network, fractions or dependence on
 * the order of maps. README.md has the formula.
 */
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import {
  type Cycle,
  type CycleEntry,
  type CycleSet,
  type CycleSetHead,
  createInputHash,
} from './cycle-set.ts';
import {
  createMeanPoints,
  FACTORS,
  type Factor,
  type MeanPoints,
  POOLS,
  type Pool,
} from './points.ts';
import { type Share, toU16 } from './u16.ts';
import { ONE_PPM, policyHashOf, type WeightPolicy } from './weight-policy.ts';

/** One factor of one executor, and the document from which the factor was read. */
export type Explanation = {
  executor: string;
  factor: Factor;
  valuePpm: number;
  evidenceId: string;
};

export type WeightResult = {
  /** Ascending; each has a positive weight. */
  uids: number[];
  weights: number[];
  explain: Explanation[];
  inputHash: string;
  policyHash: string;
  /** SHA-256 over uids, weights and both other hashes. */
  resultHash: string;
};

export type Weigher = ReturnType<typeof createWeigher>;

/**
 * Accumulates `count` cycles one at a time, oldest first, so that only one cycle is in memory. Call `result` once,
 * after the last.
 */
export function createWeigher(
  policy: WeightPolicy,
  { count, embedded }: { count: number; embedded: boolean },
) {
  const meanPoints = createMeanPoints(policy, { count, embedded });
  const hash = createInputHash();
  const hotkeys = new Set<Hotkey>();
  let last: readonly CycleEntry[] = [];

  return {
    add(cycle: Cycle): void {
      meanPoints.add(cycle);
      hash.add(cycle);
      for (const { hotkey } of cycle.entries) hotkeys.add(hotkey);
      last = cycle.entries;
    },

    /** Hotkeys with an executor in any of the cycles. */
    hotkeys: (): ReadonlySet<Hotkey> => hotkeys,

    meanPoints: (): MeanPoints[] => meanPoints.all(),

    /** Returns null if the burn recipient is not registered. Then no weights may be posted. */
    result(head: CycleSetHead): WeightResult | null {
      const burn = policy.burn_hotkey ?? head.validator;
      if (!head.neurons.some(({ hotkey }) => hotkey === burn)) return null;
      const all = meanPoints.all();
      const { uids, weights } = weightsOf(all, { head, policy, burn, live: liveHotkeys(last) });
      const hashes = { inputHash: hash.end(head), policyHash: policyHashOf(policy) };
      const result = { uids, weights, ...hashes };
      const resultHash = sha256Hex(canonicalJson(result));
      return { ...result, explain: all.flatMap(explained), resultHash };
    },
  };
}

/** Computes weights from a set with all cycles in memory. */
export function computeWeights(input: CycleSet, policy: WeightPolicy): WeightResult | null {
  const { cycles, ...head } = input;
  const weigher = createWeigher(policy, { count: cycles.length, embedded: input.embedded });
  for (const cycle of cycles) weigher.add(cycle);
  return weigher.result(head);
}

type Weighed = {
  head: CycleSetHead;
  policy: WeightPolicy;
  burn: Hotkey;
  /** Hotkeys with a node that passed in the last cycle. */
  live: ReadonlySet<Hotkey>;
};

/** Uids in ascending order and their positive weights. */
function weightsOf(meanPoints: readonly MeanPoints[], { head, policy, burn, live }: Weighed) {
  const uidOf = new Map(head.neurons.map(({ uid, hotkey }) => [hotkey, uid]));
  const registered = meanPoints.filter(({ latest }) => uidOf.has(latest.entry.hotkey));
  const { shares, denominator } = sharesOf(registered, policy, burn);
  const weights = toU16(shares, {
    denominator,
    mode: policy.conversion,
    needsFloor: ({ hotkey, part }) =>
      hotkey !== burn && (part > 0n || (policy.live_floor && live.has(hotkey))),
  });
  const posted = [...weights]
    .filter(([, weight]) => weight > 0)
    .map(([hotkey, weight]) => ({ uid: uidOf.get(hotkey) ?? 0, weight }))
    .sort((a, b) => a.uid - b.uid);
  return { uids: posted.map(({ uid }) => uid), weights: posted.map(({ weight }) => weight) };
}

/**
 * Exact shares over a common denominator: each hotkey's part of both pools. The burn recipient gets its own share and
 * the share of every pool without points. Hotkeys without points have a share of 0.
 */
function sharesOf(
  meanPoints: readonly MeanPoints[],
  { pools_ppm: ppm }: WeightPolicy,
  burn: Hotkey,
) {
  const totals = { mining: totalOf(meanPoints, 'mining'), idle: totalOf(meanPoints, 'idle') };
  const divisors = { mining: totals.mining || 1n, idle: totals.idle || 1n };
  const both = divisors.mining * divisors.idle;
  const empty = POOLS.filter((pool) => totals[pool] === 0n);
  const burned = empty.reduce((sum, pool) => sum + ppm[pool], ppm.burn);
  const parts = new Map<Hotkey, bigint>([[burn, BigInt(burned) * both]]);
  for (const { latest, points } of meanPoints) {
    const { hotkey } = latest.entry;
    const part = POOLS.reduce(
      (sum, pool) => sum + (BigInt(ppm[pool]) * points[pool] * both) / divisors[pool],
      0n,
    );
    parts.set(hotkey, (parts.get(hotkey) ?? 0n) + part);
  }
  const shares: Share[] = [...parts].map(([hotkey, part]) => ({ hotkey, part }));
  return { shares, denominator: BigInt(ONE_PPM) * both };
}

function totalOf(meanPoints: readonly MeanPoints[], pool: Pool): bigint {
  return meanPoints.reduce((sum, { points }) => sum + points[pool], 0n);
}

function liveHotkeys(entries: readonly CycleEntry[]): Set<Hotkey> {
  return new Set(entries.filter(({ verdict }) => verdict === 'ok').map(({ hotkey }) => hotkey));
}

function explained({ executorId, latest }: MeanPoints): Explanation[] {
  return FACTORS.map((factor) => ({
    executor: executorId,
    factor,
    valuePpm: latest.factors[factor],
    evidenceId: latest.entry.evidence_id,
  }));
}
