/**
 * Explains the weight of an executor in a stored epoch: its points, the factors of the points, and the changes that
 * would raise them.
 */
import type { WeightExplanation } from '#shared/api/central/epoch-records.ts';
import { type Clock, createEventLoopYield } from '#shared/runtime/clock.ts';
import type { EpochRow, EvidenceStore } from '../store/tables.ts';
import { poolsPpm } from '../weights/compute-weights.ts';
import { readPayload, readPolicy, weightOf } from '../weights/epoch-record.ts';
import {
  type Explained,
  factorText,
  improvements,
  OBSTACLES,
  registeredOf,
  shareOfPool,
} from '../weights/explain.ts';
import { FACTORS, type MeanPoints, POOLS } from '../weights/points.ts';
import { weighStoredEpoch } from '../weights/replay.ts';
import { ONE_PPM } from '../weights/weight-policy.ts';
import { notStored } from './evidence-records.ts';

/**
 * Time for which an epoch with recomputed weights is cached. For a large fleet, the computation takes seconds and much
 * memory.
 */
const KEPT_MS = 60_000;

export type WeightExplanations = ReturnType<typeof createWeightExplanations>;

type Weighed = Explained & { isComplete: boolean };

export function createWeightExplanations(store: EvidenceStore, clock: Clock) {
  /** Epoch of the last request. Concurrent requests for the same epoch share the computation. */
  let last: { number: number; weighed: Promise<Weighed> } | null = null;

  async function weigh(epoch: EpochRow): Promise<Weighed> {
    const policy = readPolicy(epoch);
    const yieldToEventLoop = createEventLoopYield(clock);
    const { head, kept, weigher } = await weighStoredEpoch(store, epoch, policy, yieldToEventLoop);
    return {
      head,
      policy,
      cycles: kept.length,
      posted: readPayload(epoch),
      meanPoints: weigher.meanPoints(),
      isComplete: weigher.result(head)?.inputHash === epoch.input_hash,
    };
  }

  function weighed(epoch: EpochRow): Promise<Weighed> {
    if (last?.number === epoch.number) return last.weighed;
    const current = { number: epoch.number, weighed: weigh(epoch) };
    last = current;
    const forget = () => {
      if (last === current) last = null;
    };
    void current.weighed.then(() => clock.sleep(KEPT_MS)).then(forget, forget);
    return current.weighed;
  }

  /** Throws `not_found` for an executor that no cycle of the epoch has measured. */
  return async (epoch: EpochRow, executorId: string): Promise<WeightExplanation> => {
    const explained = await weighed(epoch);
    const mean = explained.meanPoints.find((one) => one.executorId === executorId);
    if (mean === undefined) {
      throw notStored(`measurement of node ${executorId} in epoch ${epoch.number}`);
    }
    return explanationOf(mean, explained);
  };
}

function explanationOf(mean: MeanPoints, explained: Weighed): WeightExplanation {
  const { head, meanPoints, cycles, policy, posted, isComplete } = explained;
  const { entry, factors, obstacles } = mean.latest;
  const pools = poolsPpm(registeredOf(explained), head, policy);
  const uid = head.neurons.find(({ hotkey }) => hotkey === entry.hotkey)?.uid ?? null;
  return {
    epoch: head.epoch,
    executor_id: mean.executorId,
    hotkey: entry.hotkey,
    uid,
    weight: uid === null ? 0 : weightOf(posted, uid),
    executors_of_hotkey: meanPoints.filter(({ latest }) => latest.entry.hotkey === entry.hotkey)
      .length,
    evidence_id: entry.evidence_id,
    cycles_measured: mean.measured,
    cycles_of_window: Math.min(cycles, policy.window_cycles),
    cycles_since_measured: mean.age,
    pools: POOLS.map((pool) => ({
      pool,
      points: String(mean.points[pool]),
      share: shareOfPool(mean.points[pool], pool, explained),
      pool_share: pools[pool] / ONE_PPM,
    })),
    factors: FACTORS.map((factor) => ({
      factor,
      value: factors[factor],
      text: factorText(factor, mean.latest, policy),
    })),
    obstacles: obstacles.map((obstacle) => OBSTACLES[obstacle]),
    improvements: improvements(mean.latest, policy, cycles),
    is_complete: isComplete,
  };
}
