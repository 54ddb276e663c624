/** What is known of executors from the times before, and what is kept of a time for the next ones. */
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { ExecutorToCheck, HealthReport } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { EvidenceStore, StoreDb } from '../store/tables.ts';
import type { AgentIdentity, Facts } from './check.ts';
import type { Measured } from './measured.ts';
import { specOf } from './standing.check.ts';
import { type Claimant, takenFrom } from './standing.state.ts';
import { accept, claim, claimsOn, findAccepted, forgetOthers } from './standing.store.ts';

/** Who was not seen with a card for so long keeps nobody from it. */
const CLAIM_MS = 24 * 3_600_000;
/** And has lost its place before those who came later after this. */
const FORGOTTEN_MS = 30 * 24 * 3_600_000;

export type Standings = ReturnType<typeof createStandings>;

export function createStandings({ store, clock }: { store: EvidenceStore; clock: Clock }) {
  return {
    /** What the checks compare this inventory with. */
    async before({
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

    /**
     * In the transaction that records that it passed: its cards are its own, and it is what it is from now on. Nothing
     * of any other verdict.
     */
    async keep(tx: StoreDb, facts: Facts, { verdict }: HealthReport): Promise<void> {
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

    /** Of who has left nothing is kept: its cards may come back under another executor. */
    forgetOthers: (executorIds: ReadonlySet<string>) => forgetOthers(store, executorIds),
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
