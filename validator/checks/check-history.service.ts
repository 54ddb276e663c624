/** Stores facts of an executor for later runs: the accepted spec, and which executor claimed a card first. */
import type { ExecutorToCheck, HealthReport } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { EvidenceStore, GpuClaimRow, StoreDb } from '../store/tables.ts';
import type { Facts } from './check.ts';
import {
  accept,
  type Claimant,
  claim,
  claimsOn,
  deleteOthers,
  findAccepted,
  UNKNOWN_KEY,
} from './check-history.store.ts';
import { isChangeAnnounced, specOf } from './gpu-inventory.check.ts';
import type { Measured } from './measured.ts';
import { provenIn } from './proof-record.ts';

/** After this time without a pass, an executor's claim no longer keeps other executors from the card. */
const CLAIM_MS = 24 * 3_600_000;
/** Time without a pass after which an executor's claim is deleted, so that newer claims take precedence. */
const FORGOTTEN_MS = 30 * 24 * 3_600_000;

export type CheckHistory = ReturnType<typeof createCheckHistory>;

export function createCheckHistory({ store, clock }: { store: EvidenceStore; clock: Clock }) {
  return {
    /** Returns the facts of earlier runs with which the checks compare the inventory. */
    async load(facts: Facts): Promise<Pick<Measured, 'accepted' | 'taken'>> {
      const claimant = claimantIn(facts);
      if (claimant === null) return { accepted: null, taken: [] };
      const { executor } = facts;
      const claims = await claimsOn(store, claimant.uuids);
      return {
        accepted: await findAccepted(store, executor.id, listedAs(executor)),
        taken: takenFrom(claimant, claims, clock.now() - CLAIM_MS),
      };
    },

    /** If the executor passed, records its spec and cards in the transaction that stores the evidence. */
    async record(tx: StoreDb, facts: Facts, { verdict }: HealthReport): Promise<void> {
      const { executor, inventory, receivedMs } = facts;
      const claimant = claimantIn(facts);
      if (verdict !== 'verified' || inventory === null || claimant === null) return;
      const nowMs = clock.now();
      await claim(tx, claimant, { nowMs, forgetMs: nowMs - FORGOTTEN_MS });
      await accept(tx, {
        executorId: executor.id,
        listed: listedAs(executor),
        spec: specOf(inventory),
        gpuUuids: [...claimant.uuids],
        replaces: isChangeAnnounced(executor, receivedMs),
      });
    },

    /** Deletes the rows of executors that are no longer listed, so that other executors may claim their cards. */
    deleteOthers: (executorIds: ReadonlySet<string>) => deleteOthers(store, executorIds),
  };
}

/** Null if the executor's agent did not answer. */
function claimantIn({ executor, inventory, identity, measured }: Facts): Claimant | null {
  if (inventory === null || identity === null) return null;
  return {
    executorId: executor.id,
    agentKey: identity.publicKey,
    uuids: inventory.gpu.devices.map((device) => device.uuid),
    proven: new Set(provenIn(measured.proof_record)),
  };
}

const listedAs = ({ gpu_type, gpu_count }: ExecutorToCheck) => `${gpu_type}:${gpu_count}`;

/**
 * Returns the claimant's cards that belong to another executor. A card belongs to an executor that passed with the card
 * since `sinceMs`: to those that proved its possession before the others, then to the earliest claim. An executor whose
 * last pass is older gets its card back when it passes again with the same agent key, even if others passed with the
 * card meanwhile. Pure.
 */
export function takenFrom(
  { executorId, agentKey, uuids, proven }: Claimant,
  claims: readonly GpuClaimRow[],
  sinceMs: number,
): Measured['taken'] {
  const isOwn = ({ executor_id: id, agent_key: key }: GpuClaimRow) =>
    id === executorId && (key === agentKey || key === UNKNOWN_KEY);
  return [...new Set(uuids)].flatMap((uuid) => {
    const onCard = claims.filter((each) => each.uuid === uuid);
    const firstMs = onCard.find(isOwn)?.first_ms ?? Number.POSITIVE_INFINITY;
    const own = { first_ms: firstMs, executor_id: executorId, isProven: proven.has(uuid) };
    const [first] = onCard
      .filter((each) => each.executor_id !== executorId && each.seen_ms >= sinceMs)
      .map((each) => ({ ...each, isProven: each.is_proven === 1 }))
      .filter((each) => byRight(each, own) < 0)
      .sort(byRight);
    return first === undefined ? [] : [{ uuid, executor_id: first.executor_id }];
  });
}

type Right = Pick<GpuClaimRow, 'first_ms' | 'executor_id'> & { isProven: boolean };

/** Proven claims first, then the oldest. Equal ones are ordered by executor id, so that every run has the same result. */
function byRight(one: Right, other: Right): number {
  if (one.isProven !== other.isProven) return one.isProven ? -1 : 1;
  if (one.first_ms !== other.first_ms) return one.first_ms < other.first_ms ? -1 : 1;
  return one.executor_id < other.executor_id ? -1 : 1;
}
