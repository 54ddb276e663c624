/** Stored cycles and a policy in, weights out: no clock, network, fraction or order of maps in it (validator reference 8). Pure. */
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { sha256Hex } from '#shared/signing/canonical-request.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { CycleSet } from './cycle-set.ts';
import { FACTORS, type Factor } from './points.ts';
import { POOLS, type Pool, type Standing, standingsOf } from './standing.ts';
import { type Share, toU16 } from './u16.ts';
import { ONE_PPM, policyHashOf, type WeightPolicy } from './weight-policy.ts';

/** One factor of one executor, and the document that it is read from. */
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
  /** Over uids, weights and the two other hashes. */
  resultHash: string;
};

/** Null: the burn recipient is not registered, so nothing may be posted. */
export function computeWeights(input: CycleSet, policy: WeightPolicy): WeightResult | null {
  const uidOf = new Map(input.neurons.map(({ uid, hotkey }) => [hotkey, uid]));
  const weighed = weightsOf(input, policy);
  if (weighed === null) return null;
  const { weights, standings } = weighed;
  const posted = [...weights]
    .filter(([, weight]) => weight > 0)
    .map(([hotkey, weight]) => ({ uid: uidOf.get(hotkey) ?? 0, weight }))
    .sort((a, b) => a.uid - b.uid);
  const result = {
    uids: posted.map(({ uid }) => uid),
    weights: posted.map(({ weight }) => weight),
    inputHash: inputHashOf(input),
    policyHash: policyHashOf(policy),
  };
  const resultHash = sha256Hex(canonicalJson(result));
  return { ...result, explain: standings.flatMap(explained), resultHash };
}

/** By hotkey, and what they rest on; the same null. */
export function weightsOf(
  input: CycleSet,
  policy: WeightPolicy,
): { weights: Map<Hotkey, number>; standings: Standing[] } | null {
  const known = new Set(input.neurons.map(({ hotkey }) => hotkey));
  const burn = policy.burn_hotkey ?? input.validator;
  if (!known.has(burn)) return null;
  const standings = standingsOf(input, policy);
  const registered = standings.filter(({ latest }) => known.has(latest.entry.hotkey));
  const { shares, denominator } = sharesOf(registered, policy, burn);
  const live = policy.live_floor ? liveHotkeys(input) : new Set<Hotkey>();
  const weights = toU16(shares, {
    denominator,
    mode: policy.conversion,
    isFloored: ({ hotkey, part }) => hotkey !== burn && (part > 0n || live.has(hotkey)),
  });
  return { weights, standings };
}

/** The same whatever order executors and neurons come in: the order of cycles alone has a meaning. */
export function inputHashOf(input: CycleSet): string {
  const cycles = input.cycles.map(({ number, entries }) => ({
    number,
    entries: entries.toSorted((a, b) => (a.executor_id < b.executor_id ? -1 : 1)),
  }));
  const neurons = input.neurons.toSorted((a, b) => a.uid - b.uid);
  return sha256Hex(canonicalJson({ ...input, cycles, neurons }));
}

/**
 * Exact shares over a common denominator: each hotkey's part of both pools; the burn recipient has its own share,
 * and those of pools that nobody earned from. Hotkeys without points are there with none.
 */
function sharesOf(standings: readonly Standing[], { pools_ppm: ppm }: WeightPolicy, burn: Hotkey) {
  const totals = { mining: totalOf(standings, 'mining'), idle: totalOf(standings, 'idle') };
  const divisors = { mining: totals.mining || 1n, idle: totals.idle || 1n };
  const both = divisors.mining * divisors.idle;
  const empty = POOLS.filter((pool) => totals[pool] === 0n);
  const burned = empty.reduce((sum, pool) => sum + ppm[pool], ppm.burn);
  const parts = new Map<Hotkey, bigint>([[burn, BigInt(burned) * both]]);
  for (const { latest, points } of standings) {
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

function totalOf(standings: readonly Standing[], pool: Pool): bigint {
  return standings.reduce((sum, { points }) => sum + points[pool], 0n);
}

/** With a node that passed in the last cycle. */
function liveHotkeys({ cycles }: CycleSet): Set<Hotkey> {
  const entries = cycles.at(-1)?.entries ?? [];
  return new Set(entries.filter(({ verdict }) => verdict === 'ok').map(({ hotkey }) => hotkey));
}

function explained({ executorId, latest }: Standing): Explanation[] {
  return FACTORS.map((factor) => ({
    executor: executorId,
    factor,
    valuePpm: latest.factors[factor],
    evidenceId: latest.entry.evidence_id,
  }));
}
