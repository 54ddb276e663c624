/** A day of hidden rentals at the rate of the default policy, over a fleet in memory. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { readCheckPolicy } from '../../validator/checks/check-policy.ts';
import { reasonsIn } from '../../validator/coverage/coverage.ts';
import { createHiddenRentals } from '../../validator/probes/hidden-rentals.service.ts';
import { ORDINARY_USE } from '../../validator/probes/ordinary-use.ts';
import type { FleetHost } from '../../validator/simulate/fleet/fleet-host.ts';
import { createHostFleet } from '../../validator/simulate/fleet/host-fleet.ts';
import type { EvidenceStore } from '../../validator/store/tables.ts';
import { createFleetMarket } from '../fakes/agents/fleet-market.ts';
import { createManualClock } from '../fakes/manual-clock.ts';
import { createFleetValidator, passingTime } from '../fakes/scenes/fleet-validator.ts';
import { createTestStore } from '../fakes/scenes/test-evidence-store.ts';
import { createSeededRandom } from '../fakes/seeded-random.ts';

const INTERVAL_MS = 900_000;
const DAY_MS = 86_400_000;
const ACCOUNTS = {
  secret: 'a secret of at least thirty-two characters',
  accounts: [{ name: 'one', api_key: 'key' }],
} as const;
const checks = readCheckPolicy();
const log = createLog({ name: 'test', level: 'silent' });

let store: EvidenceStore;
beforeEach(async () => {
  store = await createTestStore();
});
afterEach(() => store.destroy());

/** Runs inspections and hidden rentals for a day. Returns the failures, and the executors that were rented. */
async function runDay(addHosts: (add: (change: Partial<FleetHost>) => FleetHost) => void) {
  const clock = createManualClock();
  const fleet = createHostFleet({ clock, wait: clock.advance });
  addHosts(fleet.add);
  const verified = new Set<string>();
  const failures = new Map<string, { afterMs: number; reasons: string[] }>();
  const market = createFleetMarket(fleet, ({ id }) => verified.has(id));
  const random = createSeededRandom(1);
  const startMs = clock.now();
  const rentals = createHiddenRentals({
    store,
    clock: passingTime(clock),
    random,
    log,
    policy: checks,
    use: ORDINARY_USE,
    readAccounts: () => ({ ...ACCOUNTS, accounts: [...ACCOUNTS.accounts] }),
    clientOf: () => market.client,
    logIn: fleet.logInAsRenter,
    listed: () => fleet.hosts().map(({ id }) => id),
    usdPerDay: 1_000,
    holdsLease: async () => true,
  });
  const validator = createFleetValidator({
    fleet,
    clock,
    random,
    store,
    checks,
    intervalMs: INTERVAL_MS,
    hiddenRentals: rentals,
    onRun({ facts, report }) {
      const { id } = facts.executor;
      if (report.verdict === 'verified') verified.add(id);
      if (report.verdict !== 'failed') return;
      verified.delete(id);
      const found = { afterMs: clock.now() - startMs, reasons: reasonsIn(report) };
      if (!failures.has(id)) failures.set(id, found);
    },
  });
  while (clock.now() - startMs < DAY_MS) {
    await validator.runOnce();
    await rentals.runOnce();
    await rentals.settled();
    await clock.advance(INTERVAL_MS);
  }
  await rentals.close();
  return { failures, rented: market.rented, hosts: fleet.hosts() };
}

it('catches a host within a day that starves renters and not test rentals, and fails no honest host', async () => {
  const { failures, rented, hosts } = await runDay((add) => {
    add({});
    add({
      inRentals: (inventory) => ({ ...inventory, cpu: { ...inventory.cpu, cores: 1 } }),
    });
  });
  const [honest, starving] = hosts.map(({ id }) => id);
  expect(failures.get(starving ?? '')).toMatchObject({
    reasons: ['hidden_rental RENTAL_BELOW_OFFER'],
  });
  expect(failures.get(starving ?? '')?.afterMs).toBeLessThan(DAY_MS);
  expect([...failures.keys()]).toEqual([starving]);
  expect(rented.filter((id) => id === honest).length).toBeGreaterThanOrEqual(1);
});

it('fails a host whose SSH ports are closed for renters', async () => {
  const { failures, hosts } = await runDay((add) => {
    add({});
    add({ sshProblem: 'refused' });
  });
  const [honest, closed] = hosts.map(({ id }) => id);
  expect(failures.has(honest ?? '')).toBe(false);
  expect(failures.get(closed ?? '')?.reasons).toContain('hidden_rental RENTAL_BELOW_OFFER');
});
