/** A marketplace whose nodes are hosts of a fleet in memory, a renter, and a validator that examines reports. */
import { ReportsToExamine } from '#shared/api/central/pod-reports.ts';
import { ExecutorsToCheck } from '#shared/api/central/validator-routes.ts';
import { createLog } from '#shared/runtime/log.ts';
import { auditLedger } from '../../../validator/central/money/ledger/audit.service.ts';
import { readCheckPolicy } from '../../../validator/checks/check-policy.ts';
import { createHealthDelivery } from '../../../validator/inspection/health-delivery.ts';
import { createRentNode } from '../../../validator/inspection/reports/rent-node.ts';
import { createReportExaminer } from '../../../validator/inspection/reports/report.service.ts';
import { createReportDelivery } from '../../../validator/inspection/reports/report-delivery.ts';
import { createHiddenRentals } from '../../../validator/probes/hidden-rentals.service.ts';
import { ORDINARY_USE } from '../../../validator/probes/ordinary-use.ts';
import type { ProbeAccounts } from '../../../validator/probes/probe-accounts.ts';
import type { FleetHost } from '../../../validator/simulate/fleet/fleet-host.ts';
import { createHostFleet } from '../../../validator/simulate/fleet/host-fleet.ts';
import { createOutbox } from '../../../validator/store/outbox.service.ts';
import { createFleetMarket } from '../agents/fleet-market.ts';
import { createManualClock } from '../manual-clock.ts';
import { createSeededRandom } from '../seeded-random.ts';
import { createFleetValidator, passingTime } from './fleet-validator.ts';
import { createTestMarket } from './market-fixture.ts';
import { createTestStore } from './test-evidence-store.ts';

/** Interval of inspections. */
export const INTERVAL_MS = 900_000;
const PROVIDER_MAIL = 'provider@example.org';
const PROBE_ACCOUNTS: ProbeAccounts = {
  secret: 'a secret of at least thirty-two characters',
  accounts: [{ name: 'one', api_key: 'key' }],
};
const PROBE_USD_PER_DAY = 1_000;
const log = createLog({ name: 'test', level: 'silent' });

export type ReportScene = Awaited<ReturnType<typeof createReportScene>>;

/** Creates the scene; with `isHidden`, hidden rentals decide reports. The caller must call `close()`. */
export async function createReportScene({ isHidden = false } = {}) {
  const clock = createManualClock();
  const random = createSeededRandom(1);
  const fleet = createHostFleet({ clock, wait: clock.advance });
  const store = await createTestStore();
  const market = await createTestMarket({ clock, agents: fleet.agents });
  const account = await market.renter();

  /** Sends a request as the validator, a second after the last one, because a repeated signature is rejected. */
  async function asValidator(path: string, body: object) {
    await clock.advance(1_000);
    return market.asValidator(path, body);
  }
  const posted = async (path: string, body: string) => {
    const answer = await asValidator(path, JSON.parse(body));
    return { status: answer.status, text: JSON.stringify(answer.body) };
  };

  const outbox = createOutbox({
    store,
    clock,
    random,
    log,
    deliveries: {
      'health-report': createHealthDelivery({
        postHealth: (body) => posted('/executor-health-check', body),
      }),
      'report-outcome': createReportDelivery({
        postReportOutcome: (id, body) => posted(`/pod-reports/${id}/outcome`, body),
      }),
      'set-weights': {
        deliver: async () => ({ state: 'delivered' }),
        onParked: async () => undefined,
      },
    },
  });
  const checks = readCheckPolicy();
  const fleetMarket = createFleetMarket(fleet, () => true);
  const hidden = createHiddenRentals({
    store,
    clock: passingTime(clock),
    random,
    log,
    policy: checks,
    use: ORDINARY_USE,
    readAccounts: () => (isHidden ? PROBE_ACCOUNTS : null),
    clientOf: () => fleetMarket.client,
    logIn: fleet.logInAsRenter,
    listed: () => [],
    usdPerDay: PROBE_USD_PER_DAY,
    holdsLease: async () => true,
  });
  const validator = createFleetValidator({
    fleet,
    clock,
    random,
    store,
    checks,
    intervalMs: INTERVAL_MS,
    hiddenRentals: hidden,
    onRun: () => undefined,
  });
  const recheck = (id: string) =>
    validator.checkNow(id, { rental_in_progress: false, gpu_uuids: [] });
  const examiner = createReportExaminer({
    store,
    clock,
    log,
    signer: market.validator,
    central: {
      claimReports: async () =>
        ReportsToExamine.parse((await asValidator('/pod-reports', {})).body),
    },
    outbox,
    known: fleet.listings,
    clientOf: fleet.clientOf,
    runInPod: fleet.runInPod,
    readBanner: fleet.readBanner,
    rentNode: createRentNode({ rentals: validator.rentals, recheck, hidden }),
    recheck,
    holdsLease: async () => true,
    beatAfter: (work) => work(),
    intervalMs: INTERVAL_MS,
  });

  /** Lists the nodes in the fleet as the central API lists them. */
  async function relist(): Promise<void> {
    const listed = ExecutorsToCheck.parse((await asValidator('/executors', {})).body);
    for (const host of fleet.hosts()) {
      host.listing = listed.find(({ id }) => id === host.id) ?? host.listing;
    }
  }

  /** Inspects the hosts that are due, and delivers the verdicts. */
  async function inspect(): Promise<void> {
    await relist();
    await validator.runOnce();
    await outbox.runOnce();
  }

  return {
    clock,
    fleet,
    market,
    account,
    store,
    inspect,
    /** Adds a verified node. */
    async addHost(): Promise<FleetHost> {
      const { id } = await market.addNode();
      await market.ports.db.updateTable('providers').set({ email: PROVIDER_MAIL }).execute();
      const host = fleet.add({ id });
      await inspect();
      return host;
    },
    /** Rents all cards of a node, and runs the pod. */
    async rent({ id }: FleetHost): Promise<string> {
      const rented = await market.rent(account, id, { gpu_count: 2 });
      if (rented.status !== 200) throw new Error(JSON.stringify(rented.body));
      await market.sync();
      await relist();
      return rented.body.id;
    },
    /** Uses the pod for a time, of which every minute is charged. */
    async use(ms: number): Promise<void> {
      await clock.advance(ms);
      await market.sync();
      await market.central.meterPods();
    },
    async endPod(podId: string): Promise<void> {
      await market.call('DELETE', `/pods/${podId}`, { headers: account.key });
      await market.sync();
      await relist();
    },
    report: (podId: string, body: Record<string, unknown>) =>
      market.call('POST', `/pods/${podId}/report`, { headers: account.key, body }),
    reports: async () => (await market.call('GET', '/pod-reports', { headers: account.key })).body,
    /** Runs one pass of the validator over the reports. */
    examine: examiner.runOnce,
    /** Makes the hidden rentals that are due. */
    async rentHidden(): Promise<void> {
      await hidden.runOnce();
      await hidden.settled();
    },
    /** Events, mails and balance of the renter, the mail of the provider, and the state of the ledger. */
    events: async () =>
      (await market.call('GET', '/users/me/events', { headers: account.key })).body,
    mails: () => market.ports.db.selectFrom('mails').select(['kind', 'to_address']).execute(),
    balance: async () =>
      (await market.call('GET', '/users/me', { headers: account.key })).body.balance,
    audit: () => market.ports.db.transaction().execute(auditLedger),
    nodeOf: ({ id }: FleetHost) =>
      market.ports.db
        .selectFrom('executors')
        .select(['state', 'checks_json'])
        .where('id', '=', id)
        .executeTakeFirstOrThrow(),
    async close(): Promise<void> {
      await hidden.close();
      await market.close();
      await store.destroy();
    },
  };
}
