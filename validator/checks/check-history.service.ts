/** Stores facts of an executor for later runs: the accepted spec, and which executor claimed a card first. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { ExecutorToCheck, HealthReport } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { EvidenceStore, GpuClaimRow, StoreDb } from '../store/tables.ts';
import type { AgentIdentity, Facts } from './check.ts';
import {
  accept,
  type Claimant,
  claim,
  claimsOn,
  deleteOthers,
  findAccepted,
  UNKNOWN_KEY,
} from './check-history.store.ts';
import { specOf } from './gpu-inventory.check.ts';
import type { Measured } from './measured.ts';

/** After this time without a pass, an executor's claim no longer keeps other executors from the card. */
const CLAIM_MS = 24 * 3_600_000;
/** Time without a pass after which an executor's claim is deleted, so that newer claims take precedence. */
const FORGOTTEN_MS = 30 * 24 * 3_600_000;

export type CheckHistory = ReturnType<typeof createCheckHistory>;

export function createCheckHistory({ store, clock }: { store: EvidenceStore; clock: Clock }) {
  return {
    /** Returns the facts of earlier runs with which the checks compare the inventory. */
    async load({
      executor,
      inventory,
      identity,
    }: Facts): Promise<Pick<Measured, 'accepted' | 'taken'>> {
      if (inventory === null || identity === null) return { accepted: null, taken: [] };
      const claimant = claimantOf(executor, inventory, identity);
      const claims = await claimsOn(store, claimant.uuids);
      return {
        accepted: await findAccepted(store, executor.id, listedAs(executor)),
        taken: takenFrom(claimant, claims, clock.now() - CLAIM_MS),
      };
    },

    /** If the executor passed, records its spec and cards in the transaction that stores the evidence. */
    async record(tx: StoreDb, facts: Facts, { verdict }: HealthReport): Promise<void> {
      const { executor, inventory, identity } = facts;
      if (verdict !== 'verified' || inventory === null || identity === null) return;
      const nowMs = clock.now();
      const claimant = claimantOf(executor, inventory, identity);
      await claim(tx, claimant, { nowMs, forgetMs: nowMs - FORGOTTEN_MS });
      await accept(tx, {
        executorId: executor.id,
        listed: listedAs(executor),
        spec: specOf(inventory),
        gpuUuids: [...claimant.uuids],
      });
    },

    /** Deletes the rows of executors that are no longer listed, so that other executors may claim their cards. */
    deleteOthers: (executorIds: ReadonlySet<string>) => deleteOthers(store, executorIds),
  };
}

const claimantOf = (
  { id }: ExecutorToCheck,
  { gpu }: Inventory,
  { publicKey }: AgentIdentity,
): Claimant => ({
  executorId: id,
  agentKey: publicKey,
  uuids: gpu.devices.map((device) => device.uuid),
});

const listedAs = ({ gpu_type, gpu_count }: ExecutorToCheck) => `${gpu_type}:${gpu_count}`;

/**
 * Returns the claimant's cards that belong to another executor. A card belongs to the executor with the earliest claim
 * among those that passed with the card since `sinceMs`. An executor whose last pass is older gets its card back when
 * it passes again with the same agent key, even if others passed with the card meanwhile. Pure.
 */
export function takenFrom(
  { executorId, agentKey, uuids }: Claimant,
  claims: readonly GpuClaimRow[],
  sinceMs: number,
): Measured['taken'] {
  const isOwn = ({ executor_id: id, agent_key: key }: GpuClaimRow) =>
    id === executorId && (key === agentKey || key === UNKNOWN_KEY);
  return [...new Set(uuids)].flatMap((uuid) => {
    const onCard = claims.filter((each) => each.uuid === uuid);
    const own = onCard.find(isOwn);
    const [first] = onCard
      .filter((each) => each.executor_id !== executorId && each.seen_ms >= sinceMs)
      .filter((each) => own === undefined || byAge(each, own) < 0)
      .sort(byAge);
    return first === undefined ? [] : [{ uuid, executor_id: first.executor_id }];
  });
}

/** Oldest first. Equal times are ordered by executor id, so that every run has the same result. */
function byAge(one: GpuClaimRow, other: GpuClaimRow): number {
  const byTime = one.first_ms - other.first_ms;
  if (byTime !== 0) return byTime;
  return one.executor_id < other.executor_id ? -1 : 1;
}
