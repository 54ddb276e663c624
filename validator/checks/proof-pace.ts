/** What proofs of work took executors, and what they are to take: learned, durable (validator reference 6). */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { EvidenceStore } from '../store/tables.ts';
import type { Facts } from './check.ts';
import { ONE_THOUSAND } from './check-policy.ts';
import {
  type Device,
  findPace,
  forgetPaces,
  keepPace,
  type Pace,
  type PaceOf,
  pacesOfModel,
} from './proof-pace.store.ts';
import { specOf } from './standing.check.ts';

/** Before so many proofs of a model its times say little. */
const ENOUGH_SAMPLES = 5;
/** How much of an executor's mean one more proof makes. */
const NEW_SHARE = 0.3;
const KEPT_MS = 30 * 24 * 3_600_000;

/** What such a proof took before, milliseconds; null while too few were seen. */
export type Expected = {
  /** Hosts with the same hardware: what a time is judged by. */
  modelMs: number | null;
  /** Of these hosts, this one itself not counted. */
  others: number;
  /** This one itself: an honest slow host is given the time that it needs. */
  ownMs: number | null;
};

export type ProofPaces = ReturnType<typeof createProofPaces>;

export function createProofPaces({ store, clock }: { store: EvidenceStore; clock: Clock }) {
  async function keepTime(facts: Facts, device: Device): Promise<void> {
    const { executor, inventory, measured, policy } = facts;
    const proof = device === 'cpu' ? measured.proof : measured.gpu_proof;
    if (inventory === null || proof?.status !== 'proven' || proof.ms === null || proof.repeated) {
      return;
    }
    const model = modelOf(inventory, device);
    const paces = await pacesOfModel(store, device, model);
    const usual = baselineOf(paces);
    const { pow_fastest_permille: fastest, pow_slowest_permille: slowest } = policy.checks;
    const permille = usual === null || usual === 0 ? null : (proof.ms / usual) * ONE_THOUSAND;
    // What is outside the window is judged by the others, and changes nothing. Where there are none, a host that was
    // busy when it was seen first is measured by itself for good, unless its better times count.
    const isFast = permille !== null && permille < fastest;
    if (permille !== null && permille > slowest) return;
    if (isFast && othersIn(paces, executor.id) > 0) return;
    const own = await findPace(store, executor.id, { device, model });
    const mean = own?.mean_ms ?? proof.ms;
    await keepPace(store, {
      ...{ executor_id: executor.id, device, model },
      mean_ms: Math.round(mean + (proof.ms - mean) * NEW_SHARE),
      samples: (own?.samples ?? 0) + 1,
      seen_ms: clock.now(),
    });
  }

  return {
    async expected(executorId: string, inventory: Inventory, device: Device): Promise<Expected> {
      const model = modelOf(inventory, device);
      const own = await findPace(store, executorId, { device, model });
      const paces = await pacesOfModel(store, device, model);
      const others = othersIn(paces, executorId);
      return { modelMs: baselineOf(paces), ownMs: own?.mean_ms ?? null, others };
    },

    /** Of a proof that is not one of the times before. */
    async keep(facts: Facts): Promise<void> {
      for (const device of ['cpu', 'gpu'] as const) await keepTime(facts, device);
      await forgetPaces(store, clock.now() - KEPT_MS);
    },
  };
}

const othersIn = (paces: readonly PaceOf[], executorId: string): number =>
  paces.filter(({ executor_id: id }) => id !== executorId).length;

/** The median of executors: no single one makes what the others are judged by. Null before enough was seen. */
export function baselineOf(paces: readonly Pace[]): number | null {
  const samples = paces.reduce((sum, pace) => sum + pace.samples, 0);
  if (samples < ENOUGH_SAMPLES) return null;
  const means = paces.map((pace) => pace.mean_ms).sort((one, other) => one - other);
  return means[Math.floor((means.length - 1) / 2)] ?? null;
}

/** Proofs take hardware of one kind alike. */
function modelOf(inventory: Inventory, device: Device): string {
  const { cpu } = inventory;
  return device === 'cpu' ? `${cpu.model} x${cpu.cores}` : specOf(inventory);
}
