/** The facts that a verdict is based on, and which verdict counts when checks of one host end out of order. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { createManualClock, type ManualClock } from '../../test/fakes/manual-clock.ts';
import { createTestStore } from '../../test/fakes/scenes/test-evidence-store.ts';
import { TRUSTED_CLOCK } from '../../test/fakes/trusted-clock.ts';
import { checkRun } from '../../test/fixtures/check-run.ts';
import { goldenPolicy } from '../../test/fixtures/cycle-set.ts';
import { inventoryOf } from '../../test/fixtures/inventory.ts';
import { createCheckHistory } from '../checks/check-history.service.ts';
import { createProofBaselines } from '../checks/proof-baseline.service.ts';
import { createEvidence } from '../evidence/evidence.service.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { createHealthService } from './health.service.ts';
import { createHostLocks } from './host-locks.ts';
import { createInspectionQueue } from './inspection-queue.ts';
import { createNetworkChecks } from './network-checks.ts';
import { createProofRounds } from './proof/proof-round.ts';
import { createVerifier } from './proof/verifier.ts';
import { createReportedNodes } from './reports/reported-nodes.service.ts';

const CYCLE_MS = 900_000;
/** Duration of a rental probe. */
const TRIAL_MS = 120_000;
const log = createLog({ name: 'test', level: 'silent' });
const IDLE_REQUEST = { rental_in_progress: false, gpu_uuids: [] };
const RENTED_REQUEST = { rental_in_progress: true, gpu_uuids: [] };
const { executor, policy } = checkRun({ atMs: 0 }).facts;

/** Current state of the host, and hooks during a check. */
let host: { cards: number; isSound: boolean; isAway: boolean; isRented: boolean };
let onTrial: () => Promise<void>;
let onPods: () => Promise<void>;
let clock: ManualClock;
let store: EvidenceStore;
beforeEach(async () => {
  host = { cards: 1, isSound: true, isAway: false, isRented: false };
  onTrial = onPods = async () => undefined;
  [clock, store] = [createManualClock(), await createTestStore()];
});
afterEach(() => store.destroy());

const client: AgentClient = {
  ...({} as AgentClient),
  async inventory() {
    if (host.isAway) throw new ApiError('upstream_unavailable', 'no answer');
    const collectedMs = clock.now();
    return inventoryOf({ executorId: executor.id, collectedMs, gpuCount: host.cards });
  },
  async listPods() {
    await onPods();
    return [];
  },
  verify: async () => ({ ok: host.isSound, reason_code: null, steps: [], simulated: false }),
};

/** Starts the health service of a new process on the store. */
function start(holder = systemRandom.uuid()) {
  const baselines = createProofBaselines({ store, clock });
  const nothing = async () => null;
  const signer = createSigner(new Uint8Array(32).fill(1));
  return createHealthService({
    clock,
    log,
    policy,
    baselines,
    atOnce: 1,
    readBanner: nothing,
    observePort: async () => ({ found: 'refused', sent: 'tls' }),
    releases: nothing,
    metrics: { checked: () => undefined, passed: () => undefined },
    directory: {
      ids: async () => new Set([executor.id]),
      drainChanged: () => [],
      find: async () => ({ ...executor, rented: host.isRented }),
    },
    clientOf: () => client,
    identityOf: async () => ({ publicKey: 'ab'.repeat(32), enrolledUntilMs: 2 ** 43 }),
    checkHistory: createCheckHistory({ store, clock }),
    inspections: createInspectionQueue({
      trust: TRUSTED_CLOCK,
      store,
      clock,
      holder,
      intervalMs: CYCLE_MS,
      pauseMs: 0,
    }),
    proofs: createProofRounds({
      clock,
      random: systemRandom,
      size: null,
      intervalMs: 0,
      baselines,
      verifier: createVerifier(),
      onProven: () => undefined,
    }),
    network: createNetworkChecks({
      clock,
      random: systemRandom,
      readPort: async () => '',
      isEnabled: false,
      intervalMs: 0,
      egressImage: null,
      templateImages: [],
    }),
    lines: { facts: nothing },
    hiddenRentals: { facts: nothing },
    hosts: createHostLocks({ store, clock, log, holder }),
    rentals: {
      async probe(facts) {
        if (!facts.executor.rented) await onTrial();
        return null;
      },
      clear: async () => true,
      podsAt: async () => [],
    },
    reported: createReportedNodes({ store, clock, intervalMs: CYCLE_MS }),
    evidence: createEvidence({
      store,
      signer,
      trusted: [signer],
      clock,
      log,
      policy: goldenPolicy(),
    }),
    outbox: { runOnce: async () => undefined },
    stopping: new AbortController().signal,
  });
}

/** Recorded verdicts in order, the stored state, and the queued messages. */
async function recorded() {
  const evidence = await store.selectFrom('evidence').select('verdict').orderBy('seq').execute();
  const stored = await store.selectFrom('inspections').selectAll().executeTakeFirst();
  const messages = await store.selectFrom('outbox').select('body').orderBy('seq').execute();
  return {
    evidence: evidence.map(({ verdict }) => verdict),
    stored: stored?.verdict,
    holder: stored?.holder,
    queued: messages.map(({ body }) => JSON.parse(body).report.verdict),
  };
}

it.each<[string, () => void, string]>([
  ['loses a card', () => Object.assign(host, { cards: 0 }), 'failed'],
  ['starts no container any more', () => Object.assign(host, { isSound: false }), 'failed'],
  ['stops answering', () => Object.assign(host, { isAway: true }), 'withheld'],
  ['does not change', () => undefined, 'verified'],
])(
  'judges a host that %s during its trials by its state afterwards',
  async (_, changeHost, verdict) => {
    onTrial = async () => {
      await clock.advance(TRIAL_MS);
      changeHost();
    };
    const beganMs = clock.now();
    const report = await start().checkNow(executor.id, IDLE_REQUEST);
    expect([report.verdict, report.checked_at_ms]).toEqual([verdict, beganMs + TRIAL_MS]);
    expect(await recorded()).toMatchObject({ stored: verdict, queued: [verdict] });
  },
);

it('drops a verdict on older facts than the stored one', async () => {
  const health = start();
  const end = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  onPods = () => {
    reached.resolve();
    return end.promise;
  };
  // The first check has read a healthy host and is delayed.
  const pass = health.runOnce();
  await reached.promise;
  onPods = async () => undefined;
  await clock.advance(1_000);
  host.cards = 0;
  expect((await health.checkNow(executor.id, RENTED_REQUEST)).verdict).toBe('failed');
  end.resolve();
  await pass;
  const expected = { evidence: ['failed'], stored: 'failed', holder: null, queued: ['failed'] };
  expect(await recorded()).toEqual(expected);
  const claims = await store.selectFrom('gpu_claims').select('uuid').execute();
  expect(claims).toEqual([]);
});

it('accepts a verdict although a withheld verdict has newer facts, or the stored time is in the future', async () => {
  const health = start();
  const [end, reached] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  onPods = () => {
    reached.resolve();
    return end.promise;
  };
  host.cards = 0;
  const failing = health.checkNow(executor.id, RENTED_REQUEST);
  await reached.promise;
  await clock.advance(1_000);
  host.isAway = true;
  expect((await health.checkNow(executor.id, RENTED_REQUEST)).verdict).toBe('withheld');
  end.resolve();
  expect((await failing).verdict).toBe('failed');
  expect(await recorded()).toMatchObject({ stored: 'failed', queued: ['failed'] });

  const aheadMs = clock.now() + 3_600_000;
  await store.updateTable('inspections').set({ facts_ms: aheadMs }).execute();
  Object.assign(host, { isAway: false, cards: 1 });
  expect((await health.checkNow(executor.id, RENTED_REQUEST)).verdict).toBe('verified');
  expect(await recorded()).toMatchObject({ stored: 'verified', queued: ['verified'] });
});

it('orders verdicts by the time of their facts, also if the first process was killed', async () => {
  const hold = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  onPods = () => {
    reached.resolve();
    return hold.promise;
  };
  const stuck = start('killed').runOnce();
  await reached.promise;
  onPods = async () => undefined;
  // The claim expired, as after a kill; the other process reads later and finishes first.
  await store.updateTable('inspections').set({ holder: null, held_until_ms: 0 }).execute();
  await clock.advance(1_000);
  host.cards = 0;
  await start('next').runOnce();
  hold.resolve();
  await stuck;
  expect(await recorded()).toMatchObject({ evidence: ['failed'], queued: ['failed'] });
});

it.each<[string, () => Promise<void>]>([
  ['a requested check announces a rental', async () => undefined],
  ['the central API lists a rental', async () => void Object.assign(host, { isRented: true })],
])('a failure found by a trial counts while %s, until a later trial passes', async (_, rent) => {
  const trials = vi.fn(async () => undefined);
  onTrial = trials;
  host.isSound = false;
  const foundAt = naiveUtc(clock.now());
  expect((await start().checkNow(executor.id, IDLE_REQUEST)).verdict).toBe('failed');
  host.isSound = true;
  await rent();
  for (let time = 0; time < 2; time += 1) {
    await clock.advance(1_000);
    // Each check runs in a new process.
    const report = await start().checkNow(executor.id, RENTED_REQUEST);
    const container = report.checks.find((check) => check.check_id === 'container_start');
    expect(report.verdict).toBe('failed');
    expect(container).toMatchObject({ passed: false, reason_code: 'CONTAINER_START_FAILED' });
    expect(container?.message).toContain(`open since ${foundAt}Z`);
  }
  expect(trials).toHaveBeenCalledTimes(1);
  host.isRented = false;
  await clock.advance(1_000);
  expect((await start().checkNow(executor.id, IDLE_REQUEST)).verdict).toBe('verified');
  await clock.advance(1_000);
  expect((await start().checkNow(executor.id, RENTED_REQUEST)).verdict).toBe('verified');
});

it('runs one trial per host: the second check waits for the trials of the first', async () => {
  const health = start();
  const begun: PromiseWithResolvers<void>[] = [];
  onTrial = () => {
    const trial = Promise.withResolvers<void>();
    begun.push(trial);
    return trial.promise;
  };
  const checks = [1, 2].map(() => health.checkNow(executor.id, IDLE_REQUEST));
  await eventually('the first trial', () => begun.length === 1);
  // A check without trials does not wait.
  expect((await health.checkNow(executor.id, RENTED_REQUEST)).verdict).toBe('verified');
  expect(begun).toHaveLength(1);
  begun[0]?.resolve();
  await eventually('the second trial', () => begun.length === 2);
  begun[1]?.resolve();
  expect((await Promise.all(checks)).map(({ verdict }) => verdict)).toEqual([
    'verified',
    'verified',
  ]);
});
