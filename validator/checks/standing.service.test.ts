import { afterEach, beforeEach, expect, it } from 'vitest';
import { createManualClock, type ManualClock } from '../../test/fakes/manual-clock.ts';
import { createTestStore } from '../../test/fakes/scenes/test-evidence-store.ts';
import { checkRun } from '../../test/fixtures/check-run.ts';
import { executorId } from '../../test/fixtures/cycle-set.ts';
import type { EvidenceStore } from '../store/tables.ts';
import type { Facts } from './check.ts';
import { judgeAll } from './pipeline.ts';
import { createStandings, type Standings } from './standing.service.ts';

const DAY_MS = 24 * 3_600_000;
const [FIRST, LATER] = [1, 2];

let clock: ManualClock;
let store: EvidenceStore;
let standings: Standings;
let uuids: readonly string[];
beforeEach(async () => {
  [clock, store] = [createManualClock(), await createTestStore()];
  standings = createStandings({ store, clock });
  uuids = checkRun({ atMs: clock.now() }).facts.inventory?.gpu.devices.map((d) => d.uuid) ?? [];
});
afterEach(() => store.destroy());

/** A check of an executor that shows the same card as all others; what of it counts, if it does. */
async function check(number: number, publicKey = `key of ${number}`): Promise<string[]> {
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
  const known = await standings.before(shown);
  const judged: Facts = { ...shown, measured: { ...shown.measured, ...known } };
  const { report } = judgeAll(judged, 0);
  await store.transaction().execute((tx) => standings.keep(tx, judged, report));
  return report.checks.flatMap(({ reason_code: reason }) => reason ?? []);
}

it('a card is of whom passed with it first, as often as others show it', async () => {
  expect(await check(FIRST)).toEqual([]);
  for (let time = 0; time < 3; time += 1) {
    await clock.advance(DAY_MS / 2);
    expect(await check(LATER)).toEqual(['GPU_DUPLICATE']);
    expect(await check(FIRST)).toEqual([]);
  }
});

it('whoever was away has it back, and who came with it meanwhile fails from then on', async () => {
  expect(await check(FIRST)).toEqual([]);
  await clock.advance(2 * DAY_MS);
  expect(await check(LATER)).toEqual([]);
  await clock.advance(DAY_MS / 4);
  expect(await check(LATER)).toEqual([]);
  expect(await check(FIRST)).toEqual([]);
  expect(await check(LATER)).toEqual(['GPU_DUPLICATE']);
  expect(await check(FIRST)).toEqual([]);
});

it('one that comes back with another key, or after a month, is a newcomer', async () => {
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

it('of two that pass with a card at once the same one is the first for both', async () => {
  const both = [FIRST, LATER].map((number) => ({
    ...{ uuid: uuids[0] ?? '', executor_id: executorId(number), agent_key: `key of ${number}` },
    ...{ first_ms: clock.now(), seen_ms: clock.now() },
  }));
  await store.insertInto('gpu_claims').values(both).execute();
  expect([await check(FIRST), await check(LATER)]).toEqual([[], ['GPU_DUPLICATE']]);
});
