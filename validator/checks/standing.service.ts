/** What is known of executors from the times before, and what is kept of a time for the next ones. */
import type { Inventory } from '#shared/agent-api/inventory.ts';
import type { ExecutorToCheck, HealthReport } from '#shared/central-api/validator-routes.ts';
import type { Clock } from '#shared/clock.ts';
import type { Ledger } from '../ledger/ledger.tables.ts';
import type { Facts } from './check.ts';
import { ONE_THOUSAND } from './check-policy.ts';
import type { Measured } from './measured.ts';
import { specOf } from './standing.check.ts';
import {
  accept,
  claim,
  claimsOfOthers,
  findAccepted,
  findProofTime,
  forgetOthers,
  keepProofTime,
} from './standing.store.ts';

/** A card that nobody was seen with for so long may be anybody's. */
const CLAIM_MS = 24 * 3_600_000;
/** Before so many proofs a mean says little. */
const ENOUGH_SAMPLES = 5;
/** How much of the mean one more proof makes. */
const NEW_SHARE = 0.3;

export type Standings = ReturnType<typeof createStandings>;

export function createStandings({ ledger, clock }: { ledger: Ledger; clock: Clock }) {
  const sinceMs = () => clock.now() - CLAIM_MS;

  async function keepTime({ inventory, measured: { proof }, policy }: Facts): Promise<void> {
    if (inventory === null || proof?.status !== 'proven' || proof.ms === null) return;
    const processor = processorOf(inventory);
    const before = await findProofTime(ledger, processor);
    const samples = (before?.samples ?? 0) + 1;
    const mean = before?.mean_ms ?? proof.ms;
    const { pow_fastest_permille: fastest, pow_slowest_permille: slowest } = policy.checks;
    const permille = mean === 0 ? ONE_THOUSAND : (proof.ms / mean) * ONE_THOUSAND;
    // What is outside the window is judged by the mean, and does not move it.
    if (samples > ENOUGH_SAMPLES && (permille < fastest || permille > slowest)) return;
    const next = Math.round(mean + (proof.ms - mean) * NEW_SHARE);
    await keepProofTime(ledger, { processor, mean_ms: next, samples });
  }

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

    /** Milliseconds that a proof takes processors such as this one; null while too few were seen. */
    async expectedMs(inventory: Inventory): Promise<number | null> {
      const known = await findProofTime(ledger, processorOf(inventory));
      return known === undefined || known.samples < ENOUGH_SAMPLES ? null : known.mean_ms;
    },

    /** Of an executor that passed: its cards are its own, and it is what it is from now on. */
    async keep(facts: Facts, { verdict }: HealthReport): Promise<void> {
      await keepTime(facts);
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

/** Proofs take processors of one kind alike. */
const processorOf = ({ cpu }: Inventory) => `${cpu.model} x${cpu.cores}`;
