/** The epochs of a run: the weight of each hotkey, and the part of all weight that hosts got from each pool. */
import type { EvidenceStore } from '../../store/tables.ts';
import { poolsPpm } from '../../weights/compute-weights.ts';
import { readPayload } from '../../weights/epoch-record.ts';
import { registeredOf } from '../../weights/explain.ts';
import type { Pool } from '../../weights/points.ts';
import { weighStoredEpoch } from '../../weights/replay.ts';
import { ONE_PPM, type WeightPolicy } from '../../weights/weight-policy.ts';
import { sum } from './statistics.ts';
import type { EpochShares } from './weight-schemas.ts';

/** Shares of all weight by hotkey, and the hours until the next epoch or the end. */
export type Epoch = {
  shares: ReadonlyMap<string, number>;
  hours: number;
  pools: Pick<EpochShares, 'rented_pool' | 'idle_pool'>;
};

const HOUR_MS = 3_600_000;

/** Returns all epochs, oldest first. A hotkey without weight is missing. `endMs`: wall-clock time. */
export async function epochsIn(
  store: EvidenceStore,
  policy: WeightPolicy,
  endMs: number,
): Promise<Epoch[]> {
  const rows = await store.selectFrom('epochs').selectAll().orderBy('number').execute();
  const neurons = await store.selectFrom('neurons').select(['uid', 'hotkey']).execute();
  const hotkeys = new Map(neurons.map(({ uid, hotkey }) => [uid, hotkey]));
  const epochs: Epoch[] = [];
  for (const [index, row] of rows.entries()) {
    const { uids, weights } = readPayload(row);
    const total = sum(weights);
    const untilMs = rows[index + 1]?.computed_ms ?? endMs;
    const shares = uids.map(
      (uid, at) => [hotkeys.get(uid) ?? '', (weights[at] ?? 0) / total] as const,
    );
    epochs.push({
      shares: new Map(shares),
      hours: Math.max(0, untilMs - row.computed_ms) / HOUR_MS,
      pools: await poolsOf(store, row, policy),
    });
  }
  return epochs;
}

/** Weighs the epoch again, one cycle at a time, because the store does not have the parts of the pools. */
async function poolsOf(
  store: EvidenceStore,
  row: Parameters<typeof weighStoredEpoch>[1],
  policy: WeightPolicy,
): Promise<Epoch['pools']> {
  const { head, weigher } = await weighStoredEpoch(store, row, policy);
  const registered = registeredOf({ head, meanPoints: weigher.meanPoints() });
  const ppm = poolsPpm(registered, head, policy);
  const earned = (pool: Pool) => ({
    share: ppm[pool] / ONE_PPM,
    hosts: registered.filter(({ points }) => points[pool] > 0n).length,
  });
  return { rented_pool: earned('mining'), idle_pool: earned('idle') };
}
