/** The processes of a simulation: central API and validator, which can be killed and started again on their databases. */
import type { Clock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import type { LocalSigner, Signer, Verify } from '#shared/signing/sr25519.ts';
import { createValidator, type Validator } from '../../app.ts';
import { type Central, createCentral } from '../../central/app.ts';
import type { CentralOptions, CentralPorts } from '../../central/platform/central-deps.ts';
import type { Database } from '../../central/platform/database/tables.ts';
import type { Agents } from '../../central/platform/ports.ts';
import { readCheckPolicy } from '../../checks/check-policy.ts';
import type { SerialUser } from '../../database/serial-dialect.ts';
import type { EvidenceStore } from '../../store/tables.ts';
import { localMetagraph } from '../../weights/metagraph.ts';
import { hostAccessOf } from '../fleet/fleet-access.ts';
import { type Answer, type CallApi, callerOf, transportTo } from './api.ts';
import { checkEventOf } from './check-event.ts';
import { beginLife, ConnectionLost, type Life } from './life.ts';
import { createModelPayments, type ModelPayments } from './model-payments.ts';
import { CENTRAL_OPTIONS, LISTS_PER_CHECK, SIMULATED_CHECKS, SIMULATED_PROOF } from './settings.ts';
import type { World } from './world.ts';

/** A service as one process after the other. */
export type Service = {
  /** Starts a process on the database. Rejects if one runs. */
  start(): Promise<void>;
  isRunning(): boolean;
  /** Total time in milliseconds in which no process ran, since the first start. */
  downMs(): number;
  /** Kills the process before the result of its database operation with this number, counted from now, arrives. */
  killAfter(operations: number): Promise<void>;
  close(): Promise<void>;
};

/** Additions to the central API in a world that people use. */
export type CentralEdge = {
  ports: Partial<CentralPorts>;
  options: Partial<CentralOptions>;
  /** Connects a new process with clients outside the world. Returns the function that closes their connections. */
  attach(central: Central): Promise<() => void>;
};

export type Services = {
  central: Service;
  validator: Service;
  payments: ModelPayments;
  /** Requests to the central API that runs. Answers UNREACHABLE if none runs, or if it is killed meanwhile. */
  call: CallApi;
};

/** A database as one process has it. */
export type Opened<Db> = { db: Db; user: SerialUser };

export type ServiceParts = Pick<
  World,
  'clock' | 'randomOf' | 'journal' | 'scenario' | 'fleet' | 'weightPolicy'
> & {
  /** Opens the database of the central API, and the evidence store, for a process. */
  openCentral(): Opened<Database>;
  openStore(): Opened<EvidenceStore>;
  agents: Agents;
  centralHotkey: Hotkey;
  validatorKey: LocalSigner;
  requests: { signer: Signer; verify: Verify };
  /** Absent: only the world sends requests to the central API. */
  edge?: CentralEdge;
};

/** Error code of requests that no process answered. */
export const UNREACHABLE = 'unreachable';
const NO_ANSWER: Answer = { status: 503, body: { error: { code: UNREACHABLE } } };
const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const SECRET_BYTES = 32;
const MICRO_USD = 1_000_000;
const RETENTION_DAYS = 90;
/** The central API's address, which only requests in this process use. */
const CENTRAL_URL = 'http://central.invalid/api';
const silent = createLog({ name: 'simulate', level: 'silent' });

export function createServices(parts: ServiceParts): Services {
  const { clock, randomOf } = parts;
  const payments = createModelPayments(randomOf('payments'));
  const secret = randomOf('secret').bytes(SECRET_BYTES);
  const central = createService({
    clock,
    open: parts.openCentral,
    create: (process) => createCentralIn(process, { ...parts, secret, payments }),
  });
  const call: CallApi = async (request) => {
    const process = central.current();
    if (process === null) return NO_ANSWER;
    const { life, service } = process;
    try {
      return await life.serve(callerOf(service.server)(request));
    } catch (error) {
      if (error instanceof ConnectionLost) return NO_ANSWER;
      throw error;
    }
  };
  const validator = createService({
    clock,
    open: parts.openStore,
    create: async (process) => createValidatorIn(process, parts, () => central.current()),
  });
  return { central, validator, payments, call };
}

/** State of one process. `number` counts the processes of the service. */
type Process<Db> = { life: Life; db: Db; number: number };

type Running<T> = { life: Life; user: SerialUser; service: T };

function createService<Db, T extends { start(): void; close(): Promise<void> }>({
  clock,
  open,
  create,
}: {
  clock: Clock;
  open(): Opened<Db>;
  create(process: Process<Db>): Promise<T>;
}) {
  let running: Running<T> | null = null;
  let started = 0;
  let downMs = 0;
  let sinceMs = clock.monotonicMs();
  return {
    /** The process that runs; null if none does. */
    current: () => running,
    isRunning: () => running !== null,
    downMs: () => downMs + (running === null ? clock.monotonicMs() - sinceMs : 0),
    async start() {
      if (running !== null) throw new Error('the service already runs');
      started += 1;
      const life = beginLife(clock);
      const { db, user } = open();
      const service = await create({ life, db, number: started });
      downMs += started === 1 ? 0 : clock.monotonicMs() - sinceMs;
      running = { life, user, service };
      service.start();
    },
    async killAfter(operations: number) {
      const killed = running;
      if (killed === null) return;
      const { life, user } = killed;
      await new Promise<void>((resolve, reject) => {
        user.afterOperations(operations, () => {
          life.end();
          running = null;
          sinceMs = clock.monotonicMs();
          user.crash().then(resolve, reject);
        });
      });
    },
    async close() {
      await running?.service.close();
      running = null;
    },
  };
}

async function createCentralIn(
  { life, db, number }: Process<Database>,
  {
    randomOf,
    scenario,
    agents,
    requests,
    validatorKey,
    secret,
    payments,
    edge,
  }: ServiceParts & {
    secret: Uint8Array;
    payments: ModelPayments;
  },
): Promise<Central> {
  const central = await createCentral(
    {
      db,
      clock: life.clock,
      random: randomOf(`central ${number}`),
      log: silent,
      secret,
      agents: { ...agents, clientOf: (executorId) => life.guard(agents.clientOf(executorId)) },
      verifyValidator: requests.verify,
      payments: life.guard(payments.port),
      payoutProcessor: 'simulated',
      ...edge?.ports,
    },
    {
      ...CENTRAL_OPTIONS,
      validators: [validatorKey.hotkey],
      signupCreditUusd: Math.round(scenario.demand.credit_usd * MICRO_USD),
      syncIntervalMs: scenario.sync_interval_seconds * SECOND_MS,
      meterTickMs: scenario.meter_tick_seconds * SECOND_MS,
      busySyncMs: scenario.busy_sync_seconds * SECOND_MS,
      unreachableSyncMs: scenario.unreachable_sync_seconds * SECOND_MS,
      pollMs: scenario.poll_seconds * SECOND_MS,
      ...edge?.options,
    },
  );
  if (edge !== undefined) life.onEnd(await edge.attach(central));
  return central;
}

function createValidatorIn(
  { life, db: store, number }: Process<EvidenceStore>,
  parts: ServiceParts,
  central: () => Running<Central> | null,
): Validator {
  const { randomOf, journal, scenario, weightPolicy, fleet } = parts;
  const { centralHotkey, validatorKey, requests } = parts;
  const hosts = hostAccessOf(fleet);
  const checkIntervalMs = scenario.check_interval_minutes * MINUTE_MS;
  return createValidator({
    clock: life.clock,
    random: randomOf(`validator ${number}`),
    log: silent,
    signer: validatorKey,
    requestSigner: requests.signer,
    store,
    centralUrl: CENTRAL_URL,
    centralTransport: life.guard(
      transportTo(central, (path, status, body) => {
        const kind = `validator-${path.split('?', 1)[0]?.split('/').at(-1) ?? ''}`;
        journal.record({ kind, status, ...checkEventOf(kind, body) });
      }),
    ),
    centralHotkey,
    hosts: life.guard({ ...hosts, clientOf: (executor) => life.guard(hosts.clientOf(executor)) }),
    policy: { acceptSimulated: false, checks: { ...readCheckPolicy(), ...SIMULATED_CHECKS } },
    proof: SIMULATED_PROOF,
    weightSettings: {
      policy: weightPolicy,
      metagraph: localMetagraph(store, validatorKey.hotkey),
      embedded: false,
      cycleMs: Math.min(checkIntervalMs, DAY_MS),
      epochMs: DAY_MS,
      retentionDays: RETENTION_DAYS,
      verdictDays: null,
    },
    checkIntervalMs,
    listIntervalMs: checkIntervalMs / LISTS_PER_CHECK,
  });
}
