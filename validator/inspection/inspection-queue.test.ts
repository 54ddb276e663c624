/** How often an executor is looked at that passes, fails, comes right or is changed. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { HealthReport } from '#shared/api/central/validator-routes.ts';
import { createManualClock, type ManualClock } from '../../test/fakes/manual-clock.ts';
import { createTestStore } from '../../test/fakes/scenes/test-evidence-store.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { createInspectionQueue, pauseAfter } from './inspection-queue.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const ID = 'executor';

let clock: ManualClock;
let store: EvidenceStore;
beforeEach(async () => {
  [clock, store] = [createManualClock(), await createTestStore()];
});
afterEach(() => store.destroy());

/** Looks as the loop does, at intervals of `passMs`, for so long. Each one anew as after a start. Seconds of each look. */
async function looks(
  verdict: HealthReport['verdict'],
  { forMs, passMs, intervalMs }: { forMs: number; passMs: number; intervalMs: number },
): Promise<number[]> {
  const beganMs = clock.now();
  const at: number[] = [];
  while (clock.now() - beganMs < forMs) {
    const inspections = createInspectionQueue({
      store,
      clock,
      holder: 'a',
      intervalMs,
      pauseMs: 0,
    });
    await inspections.sync(new Set([ID]));
    if ((await inspections.claim([ID])).length > 0) {
      at.push((clock.now() - beganMs) / 1_000);
      await end(inspections, verdict, true);
    }
    await clock.advance(passMs);
  }
  return at;
}

async function end(
  inspections: ReturnType<typeof createInspectionQueue>,
  verdict: HealthReport['verdict'],
  isClaimed: boolean,
): Promise<void> {
  const times = { checkedMs: clock.now(), factsMs: clock.now() };
  const ended = { ...(await inspections.load(ID)), executorId: ID, verdict, ...times };
  await store.transaction().execute((tx) => inspections.end(tx, ended, isClaimed));
}

const LOCAL = { forMs: 10 * MINUTE_MS, passMs: 1_000, intervalMs: MINUTE_MS };

it.each(['failed', 'withheld'] as const)(
  'looks soon, then ever later, at one that is %s',
  async (verdict) => {
    expect(await looks(verdict, LOCAL)).toEqual([
      ...[0, 1, 2, 4, 8, 16, 32, 64],
      ...[124, 184, 244, 304, 364, 424, 484, 544],
    ]);
  },
);

it('looks at one that passes at the interval alone, also after a failure', async () => {
  const minutes = Array.from({ length: 10 }, (_, at) => at * 60);
  expect(await looks('verified', LOCAL)).toEqual(minutes);
  await looks('failed', LOCAL);
  await clock.advance(MINUTE_MS);
  expect(await looks('verified', LOCAL)).toEqual(minutes);
  // And soon again once it fails.
  expect((await looks('failed', LOCAL)).slice(0, 4)).toEqual([0, 1, 2, 4]);
});

it('keeps fourteen days of one that never passes within 3,000 documents', () => {
  let [pause, looksMade, ms]: [number | null, number, number] = [null, 0, 0];
  while (ms < 14 * DAY_MS) {
    pause = pauseAfter({ verdict: 'failed', isRegular: true, before: pause, intervalMs: 900_000 });
    looksMade += 1;
    ms += pause ?? 0;
  }
  expect(looksMade).toBeLessThan(2_100);
});

it('looks at once at one that was changed, and does not pause longer for who asks', async () => {
  await looks('failed', LOCAL);
  const inspections = createInspectionQueue({
    ...{ store, clock, holder: 'a', intervalMs: MINUTE_MS, pauseMs: 0 },
  });
  expect(await inspections.due()).toEqual([]);
  await inspections.resetPauses([ID]);
  expect((await looks('failed', LOCAL)).slice(0, 4)).toEqual([0, 1, 2, 4]);
  const before = await inspections.load(ID);
  await end(inspections, 'failed', false);
  expect(await inspections.load(ID)).toEqual(before);
  await end(inspections, 'verified', false);
  expect((await inspections.load(ID)).pauseMs).toBeNull();
});
