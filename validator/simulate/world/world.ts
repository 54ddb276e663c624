/**
 * The world of a simulation: the real central API and the real validator in this process, on one clock and one seed, over
 * a fleet of modelled hosts.
 */
import { parseIsoTime } from '#shared/runtime/clock.ts';
import { createLog, type Log } from '#shared/runtime/log.ts';
import { derivedRandom, type Random } from '#shared/runtime/random.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import { createSigner, type LocalSigner } from '#shared/signing/sr25519.ts';
import { createValidator, type Validator } from '../../app.ts';
import { type Central, createCentral } from '../../central/app.ts';
import { openCentralDatabase } from '../../central/platform/database/database.ts';
import type { Database } from '../../central/platform/database/tables.ts';
import { readCheckPolicy } from '../../checks/check-policy.ts';
import { serialDialect } from '../../database/serial-dialect.ts';
import { openEvidenceStore } from '../../store/evidence-store.ts';
import type { EvidenceStore } from '../../store/tables.ts';
import { localMetagraph } from '../../weights/metagraph.ts';
import { DEFAULT_POLICY_FILE, readWeightPolicy } from '../../weights/weight-policy.ts';
import { agentsOf, hostAccessOf } from '../fleet/fleet-access.ts';
import { createHostFleet, type HostFleet } from '../fleet/host-fleet.ts';
import { doubleLease } from '../invariants/fleet-leases.ts';
import { createViolations, type Violations } from '../invariants/violations.ts';
import type { Scenario } from '../scenarios/scenario.ts';
import { createEventClock, type EventClock } from '../time/event-clock.ts';
import { type CallApi, callerOf, transportTo } from './api.ts';
import { createFastSignatures } from './fast-signatures.ts';
import { createJournal, type Journal } from './journal.ts';
import { CENTRAL_OPTIONS, SIMULATED_CHECKS, SIMULATED_PROOF } from './settings.ts';

export type World = {
  clock: EventClock;
  scenario: Scenario;
  /** Returns the source of random values of one party. Equal labels return equal values. */
  randomOf(label: string): Random;
  /** Creates a key whose signatures the seed determines. */
  signerOf(label: string): LocalSigner;
  log: Log;
  db: Database;
  store: EvidenceStore;
  central: Central;
  validator: Validator;
  fleet: HostFleet;
  call: CallApi;
  journal: Journal;
  /** Hotkey of the validator, which signs evidence and weights. */
  validatorHotkey: Hotkey;
  /** Violations of invariants, of which the first ends the run. */
  violations: Violations;
  close(): Promise<void>;
};

export type WorldOptions = {
  seed: number;
  scenario: Scenario;
  /** Address of the central API's database: `:memory:`, a file, or an empty PostgreSQL database. */
  database: string;
  log: Log;
  /** Receives each event as a line of JSON. */
  write(line: string): void;
};

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const SEED_BYTES = 32;
const MICRO_USD = 1_000_000;
const RETENTION_DAYS = 90;
/** The central API's address, which only requests in this process use. */
const CENTRAL_URL = 'http://central.invalid/api';

/** Creates the world and starts the services. The time is the start of the scenario. */
export async function createWorld(options: WorldOptions): Promise<World> {
  const { scenario, seed, log } = options;
  const clock = createEventClock(parseIsoTime(scenario.starts_at) ?? 0);
  const randomOf = (label: string) => derivedRandom(`simulation ${seed}`, label);
  const signerOf = (label: string) => {
    const random = randomOf(`key ${label}`);
    return createSigner(random.bytes(SEED_BYTES), () => random.bytes(SEED_BYTES));
  };
  const journal = createJournal(clock.now, options.write);
  const violations = createViolations(clock.now, journal);
  const through = (dialect: Parameters<typeof serialDialect>[0]) =>
    serialDialect(dialect, clock.gate.pass);
  const db = await clock.complete(openCentralDatabase(options.database, '--database', { through }));
  const store = await clock.complete(openEvidenceStore(':memory:', '--store', { through }));
  const fleet = createHostFleet({
    clock,
    wait: async (ms) => (ms > 0 ? clock.sleep(ms) : undefined),
  });
  const [central, validatorKey] = [signerOf('central'), signerOf('validator')];
  const services = await clock.complete(
    startServices({
      ...options,
      clock,
      randomOf,
      journal,
      violations,
      db,
      store,
      fleet,
      central,
      validatorKey,
    }),
  );
  log.info({ seed, scenario: scenario.name }, 'simulation begins');
  return {
    ...services,
    clock,
    scenario,
    randomOf,
    signerOf,
    log,
    db,
    store,
    fleet,
    journal,
    violations,
    validatorHotkey: validatorKey.hotkey,
    call: callerOf(services.central.server),
    async close() {
      await clock.complete(services.validator.close());
      await clock.complete(services.central.close());
      await clock.complete(store.destroy());
      await clock.complete(db.destroy());
      clock.close();
    },
  };
}

type ServiceOptions = WorldOptions &
  Pick<World, 'clock' | 'randomOf' | 'journal' | 'violations' | 'db' | 'store' | 'fleet'> & {
    central: LocalSigner;
    validatorKey: LocalSigner;
  };

async function startServices(
  options: ServiceOptions,
): Promise<Pick<World, 'central' | 'validator'>> {
  const { clock, randomOf, journal, db, store, fleet, scenario } = options;
  const { central: centralKey, validatorKey } = options;
  const agents = agentsOf(
    fleet,
    { central: centralKey.hotkey, validator: validatorKey.hotkey },
    ({ kind, executorId: executor, podId: pod, gpuUuids }) => {
      journal.record({ kind: `agent-${kind}`, executor, pod });
      if (!fleet.hostOf(executor).isUp) return;
      const { pods } = fleet.agents.host(executor);
      const double = doubleLease(pods.values(), { podId: pod, gpuUuids });
      if (double === null) return;
      const what = `${double.gpuUuid} has two pods`;
      options.violations.report('gpu-leased-once', what, [executor, pod, double.podId]);
    },
  );
  const nonces = randomOf('request nonces');
  const requests = createFastSignatures(validatorKey.hotkey, {
    key: randomOf('request key').bytes(SEED_BYTES),
    nonces: () => nonces.bytes(SEED_BYTES),
  });
  const silent = createLog({ name: 'simulate', level: 'silent' });
  const central = await createCentral(
    {
      db,
      clock,
      random: randomOf('central'),
      log: silent,
      secret: randomOf('secret').bytes(SEED_BYTES),
      agents,
      verifyValidator: requests.verify,
      payments: 'simulated',
      payoutProcessor: 'simulated',
    },
    {
      ...CENTRAL_OPTIONS,
      validators: [validatorKey.hotkey],
      signupCreditUusd: Math.round(scenario.demand.credit_usd * MICRO_USD),
      syncIntervalMs: scenario.sync_interval_seconds * SECOND_MS,
      meterTickMs: scenario.meter_tick_seconds * SECOND_MS,
      busySyncMs: scenario.busy_sync_seconds * SECOND_MS,
      pollMs: scenario.poll_seconds * SECOND_MS,
    },
  );
  const checkIntervalMs = scenario.check_interval_minutes * MINUTE_MS;
  const validator = createValidator({
    clock,
    random: randomOf('validator'),
    log: silent,
    signer: validatorKey,
    requestSigner: requests.signer,
    store,
    centralUrl: CENTRAL_URL,
    centralTransport: transportTo(
      () => central.server,
      (path, status) => {
        const kind = `validator-${path.split('?', 1)[0]?.split('/').at(-1) ?? ''}`;
        journal.record({ kind, status });
      },
    ),
    centralHotkey: centralKey.hotkey,
    hosts: hostAccessOf(fleet),
    policy: { acceptSimulated: false, checks: { ...readCheckPolicy(), ...SIMULATED_CHECKS } },
    proof: SIMULATED_PROOF,
    weightSettings: {
      policy: readWeightPolicy(DEFAULT_POLICY_FILE),
      metagraph: localMetagraph(store, validatorKey.hotkey),
      embedded: false,
      cycleMs: Math.min(checkIntervalMs, DAY_MS),
      epochMs: DAY_MS,
      retentionDays: RETENTION_DAYS,
      verdictDays: null,
    },
    checkIntervalMs,
    listIntervalMs: Math.min(checkIntervalMs, LIST_INTERVAL_MS),
  });
  central.start();
  validator.start();
  return { central, validator };
}

const LIST_INTERVAL_MS = 600_000;
