/** Stored cycles and a policy in, weights out: no clock, network, fraction or order of maps in it (validator reference 8). Pure. */
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
  createStandings,
  FACTORS,
  type Factor,
  POOLS,
  type Pool,
  type Standing,
} from './points.ts';
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

export type Weigher = ReturnType<typeof createWeigher>;

/**
 * Takes `count` cycles one after the other, oldest first: no more than one of them has to be in memory, whatever
 * the window is. `result` is asked for once, after the last.
 */
export function createWeigher(
  policy: WeightPolicy,
  { count, embedded }: { count: number; embedded: boolean },
) {
  const standings = createStandings(policy, { count, embedded });
  const hash = createInputHash();
  const hotkeys = new Set<Hotkey>();
  let last: readonly CycleEntry[] = [];

  return {
    add(cycle: Cycle): void {
      standings.add(cycle);
      hash.add(cycle);
      for (const { hotkey } of cycle.entries) hotkeys.add(hotkey);
      last = cycle.entries;
    },

    /** Whoever had an executor in any of the cycles. */
    hotkeys: (): ReadonlySet<Hotkey> => hotkeys,

    standings: (): Standing[] => standings.all(),

    /** Null: the burn recipient is not registered, so nothing may be posted. */
    result(head: CycleSetHead): WeightResult | null {
      const burn = policy.burn_hotkey ?? head.validator;
      if (!head.neurons.some(({ hotkey }) => hotkey === burn)) return null;
      const all = standings.all();
      const { uids, weights } = weightsOf(all, { head, policy, burn, live: liveHotkeys(last) });
      const hashes = { inputHash: hash.end(head), policyHash: policyHashOf(policy) };
      const result = { uids, weights, ...hashes };
      const resultHash = sha256Hex(canonicalJson(result));
      return { ...result, explain: all.flatMap(explained), resultHash };
    },
  };
}

/** The same of cycles that are all there. */
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
  /** With a node that passed in the last cycle. */
  live: ReadonlySet<Hotkey>;
};

/** Uids ascending, each with its positive weight beside. */
function weightsOf(standings: readonly Standing[], { head, policy, burn, live }: Weighed) {
  const uidOf = new Map(head.neurons.map(({ uid, hotkey }) => [hotkey, uid]));
  const registered = standings.filter(({ latest }) => uidOf.has(latest.entry.hotkey));
  const { shares, denominator } = sharesOf(registered, policy, burn);
  const weights = toU16(shares, {
    denominator,
    mode: policy.conversion,
    isFloored: ({ hotkey, part }) =>
      hotkey !== burn && (part > 0n || (policy.live_floor && live.has(hotkey))),
  });
  const posted = [...weights]
    .filter(([, weight]) => weight > 0)
    .map(([hotkey, weight]) => ({ uid: uidOf.get(hotkey) ?? 0, weight }))
    .sort((a, b) => a.uid - b.uid);
  return { uids: posted.map(({ uid }) => uid), weights: posted.map(({ weight }) => weight) };
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

function liveHotkeys(entries: readonly CycleEntry[]): Set<Hotkey> {
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
