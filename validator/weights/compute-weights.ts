/**
 * Computes weights from stored cycles and a policy. Pure, in integers only: no clock, network, fractions or dependence
 * on the order of maps. README.md has the formula.
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
  type Neuron,
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
      // In epochs of older versions, a policy without `burn_hotkey` meant the validator itself.
      const own = head.window === undefined ? head.validator : null;
      const burn = burnRecipient({ burn_hotkey: policy.burn_hotkey ?? own }, head.neurons);
      if (burn === null) return null;
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
  const { shares, denominator } = sharesOf(registered, poolsPpm(registered, head, policy), burn);
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

/** Returns the recipient of unearned shares; null if it is not registered. */
export function burnRecipient(
  { burn_hotkey: fixed }: Pick<WeightPolicy, 'burn_hotkey'>,
  neurons: readonly Neuron[],
): Hotkey | null {
  const found = neurons.find(({ uid, hotkey }) =>
    fixed === null ? uid === BURN_UID : hotkey === fixed,
  );
  return found?.hotkey ?? null;
}

/** Uid of the recipient of unearned shares if the policy names no hotkey. */
const BURN_UID = 0;

/**
 * Returns each pool's part of the total weight, in ppm: the money that was earned in the pool, divided by the worth of
 * the total weight, but at most the pool's part in the policy. Under a policy without `rewards`: the part in the
 * policy, or 0 for a pool without points.
 */
export function poolsPpm(
  registered: readonly MeanPoints[],
  { window }: Pick<CycleSetHead, 'window'>,
  { rewards, pools_ppm: most }: WeightPolicy,
): Readonly<Record<Pool, number>> {
  const totals = { mining: totalOf(registered, 'mining'), idle: totalOf(registered, 'idle') };
  if (rewards === undefined) {
    return {
      mining: totals.mining === 0n ? 0 : most.mining,
      idle: totals.idle === 0n ? 0 : most.idle,
    };
  }
  const value = BigInt(rewards.value_uusd_per_hour);
  const lengthMs = BigInt(window?.length_ms ?? 0);
  const idle = (totals.idle * BigInt(rewards.idle_rate_ppm)) / value;
  const mining =
    lengthMs === 0n
      ? 0n
      : (totals.mining * BigInt(rewards.fee_return_ppm) * HOUR_MS) / (value * lengthMs);
  return { mining: atMost(mining, most.mining), idle: atMost(idle, most.idle) };
}

const HOUR_MS = 3_600_000n;
const atMost = (ppm: bigint, most: number): number => (ppm > BigInt(most) ? most : Number(ppm));

/**
 * Exact shares over a common denominator: each hotkey's part of both pools. The burn recipient gets the rest. Hotkeys
 * without points have a share of 0.
 */
function sharesOf(
  meanPoints: readonly MeanPoints[],
  ppm: Readonly<Record<Pool, number>>,
  burn: Hotkey,
) {
  const totals = { mining: totalOf(meanPoints, 'mining'), idle: totalOf(meanPoints, 'idle') };
  const divisors = { mining: totals.mining || 1n, idle: totals.idle || 1n };
  const both = divisors.mining * divisors.idle;
  const burned = ONE_PPM - ppm.mining - ppm.idle;
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
