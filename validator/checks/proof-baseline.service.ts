/** Learns and stores how long proofs of work take, by hardware. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { isShared } from '../store/evidence-store.ts';
import type { EvidenceStore } from '../store/tables.ts';
import type { Facts } from './check.ts';
import { PERMILLE } from './check-policy.ts';
import { specOf } from './gpu-inventory.check.ts';
import {
  type Device,
  type Duration,
  type DurationOf,
  deleteDurationsBefore,
  findDuration,
  saveDuration,
} from './proof-baseline.store.ts';
import { createRecentDurations } from './recent-durations.ts';

/** Minimum number of samples of a hardware model for a baseline. */
const ENOUGH_SAMPLES = 5;
/** Weight of a new proof in an executor's moving mean. */
const NEW_SHARE = 0.3;
const KEPT_MS = 30 * 24 * 3_600_000;

/** Durations of earlier proofs in milliseconds; null until there are enough samples. */
export type Expected = {
  /** Median of hosts with the same hardware. Proofs are judged by it. */
  modelMs: number | null;
  /** Number of these hosts, this host excluded. */
  others: number;
  /** Mean of this host. Deadlines use this mean, so that a genuine slow host has enough time. */
  ownMs: number | null;
};

export type ProofBaselines = ReturnType<typeof createProofBaselines>;

export function createProofBaselines({ store, clock }: { store: EvidenceStore; clock: Clock }) {
  const recent = createRecentDurations({ store, clock, isShared: isShared(store) });

  async function recordTime(facts: Facts, device: Device): Promise<void> {
    const { executor, inventory, measured, policy } = facts;
    const proof = device === 'cpu' ? measured.proof : measured.gpu_proof;
    if (inventory === null || proof?.status !== 'proven' || proof.ms === null || proof.repeated) {
      return;
    }
    const model = modelOf(inventory, device);
    const durations = await recent.of(device, model);
    const usual = baselineOf(durations);
    const { pow_fastest_permille: fastest, pow_slowest_permille: slowest } = policy.checks;
    const permille = usual === null || usual === 0 ? null : (proof.ms / usual) * PERMILLE;
    // Times outside the limits do not change the baseline, so that one host cannot move it. Exception: without other
    // hosts, faster times count. Otherwise a host that was busy at first would always be compared with its first times.
    const isFast = permille !== null && permille < fastest;
    if (permille !== null && permille > slowest) return;
    if (isFast && othersIn(durations, executor.id) > 0) return;
    const own = await findDuration(store, executor.id, { device, model });
    const mean = own?.mean_ms ?? proof.ms;
    const duration = {
      executor_id: executor.id,
      mean_ms: Math.round(mean + (proof.ms - mean) * NEW_SHARE),
      samples: (own?.samples ?? 0) + 1,
    };
    await saveDuration(store, { ...duration, device, model, seen_ms: clock.now() });
    // The executor may have had other hardware before.
    if (own === undefined) recent.clear();
    recent.replace(device, model, duration);
  }

  return {
    async expected(executorId: string, inventory: Inventory, device: Device): Promise<Expected> {
      const model = modelOf(inventory, device);
      const own = await findDuration(store, executorId, { device, model });
      const durations = await recent.of(device, model);
      const others = othersIn(durations, executorId);
      return { modelMs: baselineOf(durations), ownMs: own?.mean_ms ?? null, others };
    },

    /** Records proofs that are new and succeeded. */
    async record(facts: Facts): Promise<void> {
      for (const device of ['cpu', 'gpu'] as const) await recordTime(facts, device);
      if (await deleteDurationsBefore(store, clock.now() - KEPT_MS)) recent.clear();
    },
  };
}

const othersIn = (durations: readonly DurationOf[], executorId: string): number =>
  durations.filter(({ executor_id: id }) => id !== executorId).length;

/** The median of executors, so that a single executor does not move it. Null until there are enough samples. */
export function baselineOf(durations: readonly Duration[]): number | null {
  const samples = durations.reduce((sum, duration) => sum + duration.samples, 0);
  if (samples < ENOUGH_SAMPLES) return null;
  const means = durations.map((duration) => duration.mean_ms).sort((one, other) => one - other);
  return means[Math.floor((means.length - 1) / 2)] ?? null;
}

/** Version of the requested work. Times of other work are not comparable: change it with the size of the proofs. */
const WORK = 'work 3';

/** Key of hardware on which proofs take the same time. */
function modelOf(inventory: Inventory, device: Device): string {
  const { cpu } = inventory;
  const hardware = device === 'cpu' ? `${cpu.model} x${cpu.cores}` : specOf(inventory);
  return `${hardware}, ${WORK}`;
}
