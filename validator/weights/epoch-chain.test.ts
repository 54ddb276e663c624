/** The chain of epochs on both engines: missing and altered epochs are reported, pruned ones are not. */
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import { createManualClock, type ManualClock } from '../../test/fakes/manual-clock.ts';
import { createTestStore } from '../../test/fakes/scenes/test-evidence-store.ts';
import { goldenPolicy } from '../../test/fixtures/cycle-set.ts';
import type { EpochRow, EvidenceStore } from '../store/tables.ts';
import { createEpochs } from './epoch.service.ts';
import { findEpoch } from './epoch.store.ts';
import { epochChainProblems, signatureProblem, signEpoch } from './epoch-chain.ts';

const DAY_MS = 86_400_000;
const log = createLog({ name: 'test', level: 'silent' });
const signer = createSigner(new Uint8Array(32).fill(1));
const other = createSigner(new Uint8Array(32).fill(2));
let clock: ManualClock;
let store: EvidenceStore;
beforeAll(async () => {
  store = await createTestStore();
});
afterAll(() => store.destroy());
beforeEach(async () => {
  clock = createManualClock();
  for (const table of ['epochs', 'cycles', 'outbox'] as const) {
    await store.deleteFrom(table).execute();
  }
});

/** A validator process; `beforeRegistrations` runs before it reads the registrations. */
const processOf = (by = signer, trusted = [signer], beforeRegistrations = async () => {}) =>
  createEpochs({
    store,
    clock,
    log,
    signer: by,
    trusted,
    policy: goldenPolicy(),
    embedded: false,
    cycleMs: 60_000,
    epochMs: 0,
    retentionDays: 14,
    metagraph: {
      async read() {
        await beforeRegistrations();
        return { block: null, neurons: [{ uid: 0, hotkey: by.hotkey }] };
      },
    },
  });

/** Ends another cycle, so that an epoch is due. */
async function nextCycle(): Promise<void> {
  await clock.advance(60_000);
  const ended_ms = clock.now();
  await store
    .insertInto('cycles')
    .values({ number: ended_ms / 1_000, ended_ms })
    .execute();
}
async function compute(times: number, epochs = processOf()): Promise<void> {
  for (let time = 0; time < times; time += 1) {
    await nextCycle();
    expect(await epochs.computeDue()).toBe(true);
  }
}
async function rowOf(number: number): Promise<EpochRow> {
  const row = await findEpoch(store, number);
  if (row === undefined) throw new Error(`no epoch ${number}`);
  return row;
}
const change = (number: number, values: Partial<EpochRow>) =>
  store.updateTable('epochs').set(values).where('number', '=', number).execute();
const remove = (...numbers: number[]) =>
  store.deleteFrom('epochs').where('number', 'in', numbers).execute();
let whole: EpochRow[] = [];
/** Computes five epochs once for all tests. */
async function wholeChain(): Promise<void> {
  if (whole.length > 0) {
    await store.insertInto('epochs').values(whole).execute();
    return;
  }
  await compute(5);
  whole = await store.selectFrom('epochs').selectAll().execute();
}

const problems = () => epochChainProblems(store, [signer]);
const unsigned = (number: number) =>
  `epoch ${number}: it is not signed with a key that is trusted at its time`;
const HEADLESS = expect.stringMatching(/^epochs: the signed head of its chain is missing or not/);

it.each<[string, () => Promise<unknown>, unknown[]]>([
  ['nothing', async () => undefined, []],
  ['an epoch in the middle', () => remove(3), ['epoch 3: it is missing']],
  ['several epochs', () => remove(2, 3, 4), ['epoch 2: all up to 4 are missing']],
  ['the first epoch', () => remove(1), ['epoch 1: it is missing']],
  [
    'other weights under another signature',
    async () => change(2, await signEpoch({ ...(await rowOf(2)), payload_json: '{}' }, other)),
    [unsigned(2), 'epoch 3: it does not follow the previous one'],
  ],
  [
    'two exchanged epochs',
    async () => {
      await change(2, { number: 99 });
      await change(3, { number: 2 });
      await change(99, { number: 3 });
    },
    [
      ...[2, 3].map(unsigned),
      ...[2, 3, 4].map((number) => `epoch ${number}: it does not follow the previous one`),
    ],
  ],
  [
    'an epoch that names another predecessor',
    () => change(4, { previous: 'a'.repeat(64) }),
    [
      unsigned(4),
      ...['epoch 4', 'epoch 5'].map((named) => `${named}: it does not follow the previous one`),
    ],
  ],
  [
    'an epoch without its place in the chain',
    () => change(3, { previous: null, first_kept: null }),
    [
      unsigned(3),
      ...['epoch 3', 'epoch 4'].map((named) => `${named}: it does not follow the previous one`),
    ],
  ],
  ['an epoch without its signature', () => change(4, { signature: null }), [unsigned(4)]],
  ['a beginning that was moved', () => change(5, { first_kept: 5 }), [HEADLESS]],
  ['an unsigned last epoch', () => change(5, { signature: null }), [HEADLESS]],
  // Removing the newest epochs cannot be detected from the remaining ones.
  ['removed epochs at the end', () => remove(4, 5), []],
])('reports %s', async (_, alter, expected) => {
  await wholeChain();
  await alter();
  expect(await problems()).toEqual(expected);
});

it('prunes the oldest epochs without hiding other changes', async () => {
  await compute(2);
  await clock.advance(8 * DAY_MS);
  await compute(3);
  await remove(4);
  await clock.advance(7 * DAY_MS);
  await compute(1);
  expect(await problems()).toEqual(['epoch 4: it is missing']);
  expect(await rowOf(6)).toMatchObject({ first_kept: 3 });
  await clock.advance(8 * DAY_MS);
  await compute(1);
  const kept = await store.selectFrom('epochs').select('number').orderBy('number').execute();
  expect([kept.map(({ number }) => number), await problems()]).toEqual([[6, 7], []]);
  await clock.advance(30 * DAY_MS);
  await compute(2);
  expect([await rowOf(9), await problems()]).toMatchObject([{ first_kept: 8 }, []]);
});

it('leaves epochs of older versions unchanged and begins the chain with the next epoch', async () => {
  await compute(2);
  for (const number of [1, 2]) {
    const older = { ...(await rowOf(number)), previous: null, first_kept: null };
    const signed = await signEpoch(older, signer);
    await change(number, signed);
    expect(signatureProblem(signed, signer.hotkey)).toBeNull();
  }
  expect(await problems()).toEqual([]);
  await compute(2);
  expect([await rowOf(3), await problems()]).toMatchObject([{ previous: null, first_kept: 3 }, []]);
  await remove(3);
  expect(await problems()).toEqual(['epoch 3: it is missing']);
});

it('does not extend an altered epoch, and reports all epochs before it', async () => {
  await compute(2);
  await change(2, { payload_json: '{}' });
  await compute(2);
  const before = 'the head of its chain was created again later and does not cover it';
  expect(await problems()).toEqual([`epoch 1: ${before}`, `epoch 2: ${before}`]);
});

it('extends epochs that an old key signed within its validity', async () => {
  await compute(1);
  await compute(1, processOf(other, [signer, other]));
  expect(await epochChainProblems(store, [signer, other])).toEqual([]);
  expect(await rowOf(2)).toMatchObject({ first_kept: 1 });
  expect(await problems()).toEqual([HEADLESS]);
});

it('stores one epoch if two processes compute it at once', async () => {
  await compute(1);
  await nextCycle();
  let computing = 0;
  const both = Promise.withResolvers<void>();
  const whenBoth = async () => {
    computing += 1;
    if (computing === 2) both.resolve();
    await both.promise;
  };
  const processes = [1, 2].map(() => processOf(signer, [signer], whenBoth).computeDue());
  const ended = await Promise.allSettled(processes);
  expect(ended.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  const letters = await store.selectFrom('outbox').select('subject').orderBy('subject').execute();
  expect(letters).toEqual([{ subject: '1' }, { subject: '2' }]);
  await compute(1);
  expect(await problems()).toEqual([]);
});
