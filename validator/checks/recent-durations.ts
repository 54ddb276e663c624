/**
 * Durations of the newest proofs of each hardware model, in memory. Each check needs them twice, and they differ between
 * two checks by one row only.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import type { EvidenceStore } from '../store/tables.ts';
import {
  type Device,
  type DurationOf,
  durationsOfModel,
  MAX_COMPARED,
} from './proof-baseline.store.ts';

/** Time after which a model is read again if other processes share the store. */
const KEPT_MS = 60_000;
/** Maximum number of models in memory. */
const MAX_MODELS = 1_000;

type Model = { readMs: number; durations: DurationOf[] };

export type RecentDurations = ReturnType<typeof createRecentDurations>;

export function createRecentDurations({
  store,
  clock,
  isShared,
}: {
  store: EvidenceStore;
  clock: Pick<Clock, 'monotonicMs'>;
  /** True if other processes may record durations in the store. */
  isShared: boolean;
}) {
  const models = new Map<string, Model>();
  const keptMs = isShared ? KEPT_MS : Number.POSITIVE_INFINITY;
  const keyOf = (device: Device, model: string) => `${device} ${model}`;

  return {
    /** Durations of executors with this hardware, at most MAX_COMPARED. */
    async of(device: Device, model: string): Promise<readonly DurationOf[]> {
      const key = keyOf(device, model);
      const nowMs = clock.monotonicMs();
      const known = models.get(key);
      if (known !== undefined && nowMs - known.readMs < keptMs) return known.durations;
      const durations = await durationsOfModel(store, device, model);
      if (models.size >= MAX_MODELS) models.clear();
      models.set(key, { readMs: nowMs, durations });
      return durations;
    },

    /** Records the newest duration of an executor, which the caller has stored. */
    replace(device: Device, model: string, duration: DurationOf): void {
      const known = models.get(keyOf(device, model));
      if (known === undefined) return;
      const { executor_id: id } = duration;
      const others = known.durations.filter(({ executor_id }) => executor_id !== id);
      known.durations = [duration, ...others.slice(0, MAX_COMPARED - 1)];
    },

    /** Reads all models again at their next use. Call it after an executor changed its hardware, or was deleted. */
    clear: (): void => models.clear(),
  };
}
