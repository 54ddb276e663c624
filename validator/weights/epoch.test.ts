import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LatestSetWeights } from '#shared/api/central/set-weights.ts';
import { createLog } from '#shared/runtime/log.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import { createManualClock, type ManualClock } from '../../test/fakes/manual-clock.ts';
import { createSeededRandom } from '../../test/fakes/seeded-random.ts';
import { type CheckRunOptions, checkRun } from '../../test/fixtures/check-run.ts';
import { goldenPolicy, hotkey, rewardPolicy } from '../../test/fixtures/cycle-set.ts';
import { createEvidence } from '../evidence/evidence.service.ts';
import { openEvidenceStore } from '../store/evidence-store.ts';
import { createOutbox } from '../store/outbox.service.ts';
import { enqueue } from '../store/outbox.store.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { versionKeyOf } from './epoch-record.ts';
import { localMetagraph, type Metagraph } from './metagraph.ts';
import { createWeights, type WeightSettings } from './weights.ts';
import { createWeightsDelivery, type WeightsDeliveryOptions } from './weights-delivery.ts';

const log = createLog({ name: 'test', level: 'silent' });
const signer = createSigner(new Uint8Array(32).fill(1));
const OTHER = createSigner(new Uint8Array(32).fill(4));
const CYCLE_MS = 60_000;
const EPOCH_MS = 300_000;

let store: EvidenceStore;
let clock: ManualClock;
/**
 * Requests to the central API and its responses. If `shown` is null, the central API publishes the last accepted
 * weights.
 */
let posted: LatestSetWeights[] = [];
let central = { status: 200, isAway: false, shown: null as LatestSetWeights | null };
beforeEach(async () => {
  store = await openEvidenceStore(':memory:');
  clock = createManualClock();
  posted = [];
  central = { status: 200, isAway: false, shown: null };
});
afterEach(() => store.destroy());

/** Starts a validator on the store. */
function start(change: Partial<WeightSettings> = {}, own = signer) {
  const policy = change.policy ?? goldenPolicy();
  const trusted = [own];
  const evidence = createEvidence({ store, signer: own, trusted, clock, log, policy });
  const sending: WeightsDeliveryOptions['central'] = {
    async postWeights(payload) {
      if (central.isAway) throw new Error('the central API is unavailable');
      posted.push(payload);
      return { status: central.status, text: 'said so' };
    },
    async readWeights() {
      const shown = central.shown ?? posted.at(-1);
      if (shown === undefined) throw new Error('nothing was posted');
      return { ...shown, validator_key: own.hotkey };
    },
  };
  const validator = own.hotkey;
  const weights = createWeightsDelivery({ store, log, validator, central: sending });
  const outbox = createOutbox({
    store,
    clock,
    log,
    random: createSeededRandom(1),
    deliveries: {
      'set-weights': weights,
      'health-report': weights,
      'report-outcome': weights,
    },
  });
  const job = createWeights({
    policy,
    metagraph: localMetagraph(store, own.hotkey),
    embedded: false,
    cycleMs: CYCLE_MS,
    epochMs: EPOCH_MS,
    retentionDays: 14,
    verdictDays: null,
    ...change,
    store,
    clock,
    log,
    signer: own,
    trusted,
    evidence,
    outbox,
    holdsLease: async () => true,
  });
  async function record(...runs: Omit<CheckRunOptions, 'atMs'>[]) {
    for (const run of runs) await evidence.record(checkRun({ atMs: clock.now(), ...run }));
  }

  return {
    runOnce: job.runOnce,
    record,
    /** Records checks and ends their cycle. */
    async cycle(...runs: Omit<CheckRunOptions, 'atMs'>[]) {
      await record(...runs);
      await clock.advance(CYCLE_MS + 5_000);
      await job.runOnce();
    },
  };
}

const epochs = () => store.selectFrom('epochs').selectAll().orderBy('number').execute();
const states = async () => (await epochs()).map(({ number, state }) => [number, state]);

describe('weights', () => {
  it('are stored, posted unchanged and read back', async () => {
    const validator = start();
    await validator.cycle({ number: 3, rented: true }, { number: 2 });
    expect(posted).toEqual([
      {
        netuid: 51,
        uids: [0, 1, 2],
        weights: [6_554, 13_107, 45_874],
        version_key: 100,
        wait_for_finalization: false,
        wait_for_inclusion: false,
        current_block: null,
        updated_at: '2027-01-15T08:01:00.000000Z',
      },
    ]);
    expect(await states()).toEqual([[1, 'confirmed']]);
    expect(JSON.parse((await epochs())[0]?.payload_json ?? '')).toEqual(posted[0]);
  });

  it('have the same bytes for validators with the same data, whenever they compute', async () => {
    // Both read one metagraph, whose uid 0 gets what is not earned.
    const neurons = [hotkey(50), hotkey(60), hotkey(3), hotkey(2), signer.hotkey, OTHER.hotkey];
    const metagraph: Metagraph = {
      read: async () => ({
        block: 77,
        neurons: neurons.map((each, uid) => ({ uid, hotkey: each })),
      }),
    };
    const bodies: string[] = [];
    for (const [own, pauseMs] of [
      [signer, 0],
      [OTHER, 20_000],
    ] as const) {
      store = await openEvidenceStore(':memory:');
      clock = createManualClock();
      const validator = start({ metagraph, policy: rewardPolicy() }, own);
      await validator.record({ number: 3, rented: true, paidFees: 0 }, { number: 2 });
      await clock.advance(CYCLE_MS + 5_000);
      await validator.record({ number: 3, rented: true, paidFees: 90_000 }, { number: 2 });
      await clock.advance(CYCLE_MS + pauseMs);
      await validator.runOnce();
      bodies.push((await epochs()).at(-1)?.payload_json ?? '');
      await store.destroy();
    }
    store = await openEvidenceStore(':memory:');
    expect(JSON.parse(bodies[0] ?? '')).toMatchObject({
      uids: [0, 2, 3],
      current_block: 77,
      updated_at: '2027-01-15T08:02:00.000000Z',
    });
    expect(bodies[1]).toBe(bodies[0]);
  });

  it('are computed once per epoch, and only after a further cycle was closed', async () => {
    const validator = start();
    await validator.cycle({});
    await validator.cycle({});
    expect(posted.length).toBe(1);
    await clock.advance(EPOCH_MS);
    await validator.runOnce();
    expect(posted.length).toBe(2);
    await clock.advance(EPOCH_MS);
    await validator.runOnce();
    expect(posted.length).toBe(2);
    await start().cycle({});
    expect(await states()).toEqual([
      [1, 'confirmed'],
      [2, 'confirmed'],
      [3, 'confirmed'],
    ]);
  });

  it('are stored before they are sent, and sent after a crash in between', async () => {
    central.isAway = true;
    await start().cycle({});
    expect([posted, await states()]).toEqual([[], [[1, 'queued']]]);
    const [stored] = await epochs();
    central.isAway = false;
    await clock.advance(10_000);
    await start().runOnce();
    expect(posted).toEqual([JSON.parse(stored?.payload_json ?? '')]);
    expect(await states()).toEqual([[1, 'confirmed']]);
  });

  it('are sent in order after a long outage of the central API', async () => {
    central.isAway = true;
    const validator = start();
    for (let epoch = 0; epoch < 3; epoch += 1) {
      await validator.cycle({});
      await clock.advance(EPOCH_MS);
    }
    central.isAway = false;
    await validator.runOnce();
    const times = posted.map((payload) => payload.updated_at);
    expect([times.length, times.toSorted()]).toEqual([3, times]);
  });

  it('are not sent again after a refusal', async () => {
    central.status = 422;
    const validator = start();
    await validator.cycle({});
    await clock.advance(200_000);
    await validator.runOnce();
    expect([posted.length, await states()]).toEqual([1, [[1, 'refused']]]);
  });

  it('are marked as differing if the central API publishes other weights', async () => {
    const validator = start();
    await validator.cycle({});
    const [first] = posted;
    central.shown = first ?? null;
    await clock.advance(EPOCH_MS);
    await validator.cycle({});
    expect(await states()).toEqual([
      [1, 'confirmed'],
      [2, 'differs'],
    ]);
  });
});

describe('nothing is posted', () => {
  it('without a metagraph', async () => {
    await start({ metagraph: null }).cycle({});
    expect([posted, await epochs()]).toEqual([[], []]);
  });

  it('while the burn recipient is not registered', async () => {
    let isRegistered = false;
    const metagraph: Metagraph = {
      read: async () => ({
        block: 77,
        neurons: [
          { uid: 4, hotkey: hotkey(1) },
          ...(isRegistered ? [{ uid: 9, hotkey: hotkey(99) }] : []),
        ],
      }),
    };
    const validator = start({ metagraph, policy: goldenPolicy({ burn_hotkey: hotkey(99) }) });
    await validator.cycle({});
    await validator.runOnce();
    expect([posted, await epochs()]).toEqual([[], []]);
    isRegistered = true;
    await validator.cycle({});
    expect(posted).toMatchObject([{ uids: [4, 9], current_block: 77 }]);
  });

  it('when the metagraph cannot be read, while cycles are still closed', async () => {
    const metagraph: Metagraph = { read: () => Promise.reject(new Error('unreadable')) };
    await expect(start({ metagraph }).cycle({})).rejects.toThrow(AggregateError);
    expect(await store.selectFrom('cycles').select('number').execute()).toHaveLength(1);
  });

  it('for empty weights', async () => {
    const validator = start();
    await validator.cycle({});
    const empty = { ...posted[0], uids: [], weights: [] };
    await enqueue(store, {
      kind: 'set-weights',
      partitionKey: 'set-weights',
      subject: '1',
      rank: 0,
      body: JSON.stringify(empty),
      next_ms: clock.now(),
    });
    await validator.runOnce();
    expect(posted).toHaveLength(1);
  });
});

it('gives all weight to the burn recipient while no executor earns', async () => {
  await start().cycle({ verdict: 'failed' });
  expect(posted).toMatchObject([{ uids: [0], weights: [65_535] }]);
});

it('retains uids in a local marketplace and appends new ones', async () => {
  const metagraph = localMetagraph(store, signer.hotkey);
  await metagraph.read([hotkey(5), hotkey(4)]);
  expect((await metagraph.read([hotkey(6), hotkey(4)])).neurons).toEqual([
    { uid: 0, hotkey: signer.hotkey },
    { uid: 1, hotkey: hotkey(5) },
    { uid: 2, hotkey: hotkey(4) },
    { uid: 3, hotkey: hotkey(6) },
  ]);
});

it('deletes expired rows once a day', async () => {
  const validator = start({ retentionDays: 1, verdictDays: 1 });
  await validator.cycle({});
  await clock.advance(3 * 86_400_000);
  await validator.cycle({});
  expect(await states()).toEqual([[2, 'confirmed']]);
  const seqs = () => store.selectFrom('evidence').select('seq').orderBy('seq').execute();
  expect(await seqs()).toEqual([{ seq: 2 }]);
  await clock.advance(2 * 86_400_000);
  await validator.runOnce();
  expect(await seqs()).toEqual([]);
});

it('drops old documents of passed checks, whose verdicts stay', async () => {
  const validator = start({ retentionDays: 1 });
  await validator.cycle({});
  await clock.advance(3 * 86_400_000);
  await validator.cycle({});
  const seqs = (table: 'evidence' | 'passed_documents') =>
    store.selectFrom(table).select('seq').orderBy('seq').execute();
  expect(await seqs('evidence')).toEqual([{ seq: 1 }, { seq: 2 }]);
  expect(await seqs('passed_documents')).toEqual([{ seq: 2 }]);
});

it('encodes the version as one number', () => {
  expect(['0.1.0', '1.2.3', '3.10.1'].map(versionKeyOf)).toEqual([100, 1_203, 4_001]);
});
