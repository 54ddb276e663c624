/** What is known of executors from the times before, and what is kept of a time for the next ones. */
import type { Inventory } from '#shared/agent-api/inventory.ts';
import type { ExecutorToCheck, HealthReport } from '#shared/central-api/validator-routes.ts';
import type { Clock } from '#shared/clock.ts';
import type { Ledger } from '../ledger/ledger.tables.ts';
import type { Facts } from './check.ts';
import type { Measured } from './measured.ts';
import { specOf } from './standing.check.ts';
import { accept, claim, claimsOfOthers, findAccepted, forgetOthers } from './standing.store.ts';

/** A card that nobody was seen with for so long may be anybody's. */
const CLAIM_MS = 24 * 3_600_000;

export type Standings = ReturnType<typeof createStandings>;

export function createStandings({ ledger, clock }: { ledger: Ledger; clock: Clock }) {
  const sinceMs = () => clock.now() - CLAIM_MS;

  return {
    /** What the checks compare this inventory with. */
    async before(
      executor: ExecutorToCheck,
      inventory: Inventory | null,
    ): Promise<Pick<Measured, 'accepted' | 'taken'>> {
      if (inventory === null) return { accepted: null, taken: [] };
      const own = { executorId: executor.id, uuids: uuidsOf(inventory) };
      return {
        accepted: await findAccepted(ledger, executor.id, listedAs(executor)),
        taken: await claimsOfOthers(ledger, own, sinceMs()),
      };
    },

    /** Of an executor that passed: its cards are its own, and it is what it is from now on. */
    async keep(facts: Facts, { verdict }: HealthReport): Promise<void> {
      const { executor, inventory } = facts;
      if (verdict !== 'verified' || inventory === null) return;
      const uuids = uuidsOf(inventory);
      const ownership = { nowMs: clock.now(), sinceMs: sinceMs() };
      await claim(ledger, { executorId: executor.id, uuids }, ownership);
      await accept(ledger, {
        executorId: executor.id,
        listed: listedAs(executor),
        spec: specOf(inventory),
        gpuUuids: uuids,
      });
    },

    /** Of who has left nothing is kept: its cards may come back under another executor. */
    forgetOthers: (executorIds: ReadonlySet<string>) => forgetOthers(ledger, executorIds),
  };
}

const uuidsOf = ({ gpu }: Inventory) => gpu.devices.map((device) => device.uuid);

const listedAs = ({ gpu_type, gpu_count }: ExecutorToCheck) => `${gpu_type}:${gpu_count}`;
