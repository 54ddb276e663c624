import { afterEach, beforeEach, expect, it } from 'vitest';
import { createManualClock, type ManualClock } from '../../test/fakes/manual-clock.ts';
import { createTestStore } from '../../test/fakes/scenes/test-evidence-store.ts';
import { checkRun } from '../../test/fixtures/check-run.ts';
import { executorId } from '../../test/fixtures/cycle-set.ts';
import type { EvidenceStore } from '../store/tables.ts';
import type { Facts } from './check.ts';
import { type CheckHistory, createCheckHistory } from './check-history.service.ts';
import { judgeAll } from './verdict.ts';

const DAY_MS = 24 * 3_600_000;
const [FIRST, LATER] = [1, 2];

let clock: ManualClock;
let store: EvidenceStore;
let history: CheckHistory;
let uuids: readonly string[];
beforeEach(async () => {
  [clock, store] = [createManualClock(), await createTestStore()];
  history = createCheckHistory({ store, clock });
  uuids = checkRun({ atMs: clock.now() }).facts.inventory?.gpu.devices.map((d) => d.uuid) ?? [];
});
afterEach(() => store.destroy());

/** Checks an executor that shows the same card as all others. Returns its failures. */
async function check(
  number: number,
  publicKey = `key of ${number}`,
  proves = false,
): Promise<string[]> {
  const { facts } = checkRun({ atMs: clock.now(), number });
  const { inventory } = facts;
  if (inventory === null) throw new Error('no inventory');
  const devices = inventory.gpu.devices.map((device, at) => ({ ...device, uuid: uuids[at] ?? '' }));
  const identity = { publicKey, enrolledUntilMs: clock.now() + DAY_MS };
  const shown = {
    ...facts,
    identity,
    inventory: { ...inventory, gpu: { ...inventory.gpu, devices } },
  };
  const atMs = clock.now();
  const entry = { offered_ms: null, proven_ms: atMs };
  const proven = proves ? devices.map(({ uuid: device }) => ({ device, ...entry })) : [];
  const proof_record = { free_ms: atMs, devices: proven };
  const tried = { ...shown, measured: { ...shown.measured, proof_record } };
  const known = await history.load(tried);
  const judged: Facts = { ...tried, measured: { ...tried.measured, ...known } };
  const { report } = judgeAll(judged, 0);
  await store.transaction().execute((tx) => history.record(tx, judged, report));
  return report.checks.flatMap(({ reason_code: reason }) => reason ?? []);
}

it('keeps a card with the executor that passed with the card first, even if others report the card repeatedly', async () => {
  expect(await check(FIRST)).toEqual([]);
  for (let time = 0; time < 3; time += 1) {
    await clock.advance(DAY_MS / 2);
    expect(await check(LATER)).toEqual(['GPU_DUPLICATE']);
    expect(await check(FIRST)).toEqual([]);
  }
});

it('returns a card to its executor after an outage, and fails the executor that claimed the card meanwhile', async () => {
  expect(await check(FIRST)).toEqual([]);
  await clock.advance(2 * DAY_MS);
  expect(await check(LATER)).toEqual([]);
  await clock.advance(DAY_MS / 4);
  expect(await check(LATER)).toEqual([]);
  expect(await check(FIRST)).toEqual([]);
  expect(await check(LATER)).toEqual(['GPU_DUPLICATE']);
  expect(await check(FIRST)).toEqual([]);
});

it('treats an executor as new if its key changed or if it was offline for a month', async () => {
  await check(FIRST);
  await clock.advance(2 * DAY_MS);
  expect(await check(LATER)).toEqual([]);
  expect(await check(FIRST, 'another key')).toEqual(['GPU_DUPLICATE']);
  for (let day = 0; day < 31; day += 1) {
    await clock.advance(DAY_MS);
    expect(await check(LATER)).toEqual([]);
  }
  expect(await check(FIRST)).toEqual(['GPU_DUPLICATE']);
});

it('orders simultaneous claims identically for both executors', async () => {
  const both = [FIRST, LATER].map((number) => ({
    uuid: uuids[0] ?? '',
    executor_id: executorId(number),
    agent_key: `key of ${number}`,
    first_ms: clock.now(),
    seen_ms: clock.now(),
    is_proven: 0 as const,
  }));
  await store.insertInto('gpu_claims').values(both).execute();
  expect([await check(FIRST), await check(LATER)]).toEqual([[], ['GPU_DUPLICATE']]);
});

it('takes a card from an executor that does not prove its possession, for one that does', async () => {
  expect(await check(FIRST)).toEqual([]);
  const prove = (number: number) => check(number, `key of ${number}`, true);
  expect(await prove(LATER)).toEqual([]);
  expect(await check(FIRST)).toEqual(['GPU_DUPLICATE']);
  expect(await prove(LATER)).toEqual([]);
});

it('leaves a card that several executors prove to the earliest claim', async () => {
  const prove = (number: number) => check(number, `key of ${number}`, true);
  expect(await prove(FIRST)).toEqual([]);
  expect(await prove(LATER)).toEqual(['GPU_DUPLICATE']);
  expect(await prove(FIRST)).toEqual([]);
});
