/**
 * The world of a simulation: the real central API and the real validator in this process, on one clock and one seed, over
 * a fleet of modelled hosts.
 */
import { parseIsoTime } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { derivedRandom, type Random } from '#shared/runtime/random.ts';
import { TEMPORARY_FILE } from '#shared/runtime/sqlite.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { LocalSigner } from '#shared/signing/sr25519.ts';
import { openCentralDatabase } from '../../central/platform/database/database.ts';
import type { Database } from '../../central/platform/database/tables.ts';
import type { Agents } from '../../central/platform/ports.ts';
import { type Dialect, type SerialDatabase, serialDialect } from '../../database/serial-dialect.ts';
import { keyringSigner } from '../../keys/key-file.ts';
import { openEvidenceStore } from '../../store/evidence-store.ts';
import type { EvidenceStore } from '../../store/tables.ts';
import type { WeightPolicy } from '../../weights/weight-policy.ts';
import { createPriceLevel, type PriceLevel } from '../actors/price-level.ts';
import { agentsOf } from '../fleet/fleet-access.ts';
import { createHostFleet, type HostFleet } from '../fleet/host-fleet.ts';
import type { ModelHost } from '../fleet/model-host.ts';
import { doubleLease } from '../invariants/fleet-leases.ts';
import { createViolations, type Violations } from '../invariants/violations.ts';
import type { Scenario } from '../scenarios/scenario.ts';
import { createEventClock, type EventClock } from '../time/event-clock.ts';
import type { CallApi } from './api.ts';
import { createFastSignatures } from './fast-signatures.ts';
import { createJournal, type Journal, type JournalOptions } from './journal.ts';
import { type CentralEdge, createServices, type Services } from './services.ts';
import { streamRandom } from './stream-random.ts';

export type World = {
  clock: EventClock;
  scenario: Scenario;
  /** Returns the source of random values of one party. Equal labels return equal values. */
  randomOf(label: string): Random;
  /** Creates a key that the seed determines. Its signatures differ between equal runs, so no event may contain them. */
  signerOf(label: string): Promise<LocalSigner>;
  log: Log;
  db: Database;
  store: EvidenceStore;
  services: Services;
  fleet: HostFleet;
  prices: PriceLevel;
  call: CallApi;
  journal: Journal;
  weightPolicy: WeightPolicy;
  /** Hotkey of the validator, which signs evidence and weights. */
  validatorHotkey: Hotkey;
  /** Violations of invariants, of which the first ends the run. */
  violations: Violations;
  close(): Promise<void>;
};

export type WorldOptions = JournalOptions & {
  seed: number;
  scenario: Scenario;
  /** Address of the central API's database: `:temporary:`, `:memory:`, a new file, or an empty PostgreSQL database. */
  database: string;
  weightPolicy: WeightPolicy;
  log: Log;
  /** Connects the central API with clients outside the world. */
  edge?: CentralEdge;
};

const SEED_BYTES = 32;

/** Creates the world and starts the services. The time is the start of the scenario. */
export async function createWorld(options: WorldOptions): Promise<World> {
  const { scenario, seed, log } = options;
  const clock = createEventClock(parseIsoTime(scenario.starts_at) ?? 0, {
    onStandstill: (problem) => violations.report('progress', problem, []),
  });
  const secret = `simulation ${seed}`;
  const randomOf = (label: string) => derivedRandom(secret, label);
  const signerOf = (label: string) => keyringSigner(randomOf(`key ${label}`).bytes(SEED_BYTES));
  const journal = createJournal(clock.steadyMs, options);
  const violations = createViolations(clock.steadyMs, journal);
  const central = shareDatabase(clock);
  const evidence = shareDatabase(clock);
  const db = await clock.complete(
    openCentralDatabase(options.database, '--database', { through: central.through }),
  );
  const store = await clock.complete(
    openEvidenceStore(TEMPORARY_FILE, '--store', { through: evidence.through }),
  );
  const fleet = createHostFleet({
    clock,
    wait: async (ms) => (ms > 0 ? clock.sleep(ms) : undefined),
  });
  const [centralKey, validatorKey] = [await signerOf('central'), await signerOf('validator')];
  const keys = { central: centralKey.hotkey, validator: validatorKey.hotkey };
  const nonces = streamRandom(secret, 'request nonces');
  const services = createServices({
    clock,
    randomOf: (label) => streamRandom(secret, label),
    journal,
    scenario,
    weightPolicy: options.weightPolicy,
    fleet,
    openCentral: () => central.open(),
    openStore: () => evidence.open(),
    agents: watchedAgents({ fleet, journal, violations }, keys),
    centralHotkey: keys.central,
    validatorKey,
    requests: createFastSignatures(keys.validator, {
      key: randomOf('request key').bytes(SEED_BYTES),
      nonces: () => nonces.bytes(SEED_BYTES),
    }),
    ...(options.edge === undefined ? {} : { edge: options.edge }),
  });
  await clock.complete(services.central.start());
  await clock.complete(services.validator.start());
  log.info({ seed, scenario: scenario.name }, 'simulation begins');
  return {
    services,
    clock,
    scenario,
    weightPolicy: options.weightPolicy,
    randomOf,
    signerOf,
    log,
    db,
    store,
    fleet,
    prices: createPriceLevel(),
    journal,
    violations,
    validatorHotkey: validatorKey.hotkey,
    call: services.call,
    async close() {
      // Without time, processes cannot end their work.
      if (clock.standstill() === null) {
        await clock.complete(services.validator.close());
        await clock.complete(services.central.close());
      }
      await clock.complete(store.destroy());
      await clock.complete(db.destroy());
      clock.close();
    },
  };
}

/** A database on one connection, which processes open one after the other. */
function shareDatabase({ gate }: EventClock) {
  let serial: SerialDatabase | null = null;
  const addUser = () => {
    if (serial === null) throw new Error('the database is not open');
    return serial.addUser();
  };
  return {
    through(dialect: Dialect): Dialect {
      serial = serialDialect(dialect, gate.pass);
      return addUser().dialect;
    },
    open<Tables>() {
      const user = addUser();
      return { user, db: user.open<Tables>() };
    },
  };
}

/** Connects the central API to the agents of the fleet, and checks each command before the agent executes it. */
function watchedAgents(
  { fleet, journal, violations }: Pick<World, 'fleet' | 'journal' | 'violations'>,
  keys: { central: Hotkey; validator: Hotkey },
): Agents {
  return agentsOf(fleet, keys, ({ kind, executorId: executor, podId: pod, gpuUuids }) => {
    journal.record({ kind: `agent-${kind}`, executor, pod });
    if (kind === 'delete') forgetPod(fleet.agents.host(executor), pod);
    if (!fleet.hostOf(executor).isUp) return;
    const { pods } = fleet.agents.host(executor);
    const double = doubleLease(pods.values(), { podId: pod, gpuUuids });
    if (double === null) return;
    const what = `${double.gpuUuid} has two pods`;
    violations.report('gpu-leased-once', what, [executor, pod, double.podId]);
  });
}

/** Removes what a modelled host records for tests, which would fill the memory in the course of months. */
function forgetPod(host: ModelHost, pod: string): void {
  host.specs.delete(pod);
  host.calls.length = 0;
}
