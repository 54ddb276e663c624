/** Inspection intervals of executors that pass, fail, recover or change. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { HealthReport } from '#shared/api/central/validator-routes.ts';
import { createManualClock, type ManualClock } from '../../test/fakes/manual-clock.ts';
import { createTestStore } from '../../test/fakes/scenes/test-evidence-store.ts';
import { TRUSTED_CLOCK } from '../../test/fakes/trusted-clock.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { createInspectionQueue, pauseAfter, reachabilityAfter } from './inspection-queue.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const ID = 'executor';

let clock: ManualClock;
let store: EvidenceStore;
beforeEach(async () => {
  [clock, store] = [createManualClock(), await createTestStore()];
});
afterEach(() => store.destroy());

/**
 * Simulates the inspection loop with passes every `passMs`; each pass uses a new queue, as after a restart. Returns the
 * second of each inspection.
 */
async function inspectionTimes(
  verdict: HealthReport['verdict'],
  { forMs, passMs, intervalMs }: { forMs: number; passMs: number; intervalMs: number },
): Promise<number[]> {
  const beganMs = clock.now();
  const at: number[] = [];
  while (clock.now() - beganMs < forMs) {
    const queue = createInspectionQueue({
      trust: TRUSTED_CLOCK,
      store,
      clock,
      holder: 'a',
      intervalMs,
      pauseMs: 0,
    });
    await queue.sync(new Set([ID]));
    if ((await queue.claim([ID])).length > 0) {
      at.push((clock.now() - beganMs) / 1_000);
      await end(queue, verdict, true);
    }
    await clock.advance(passMs);
  }
  return at;
}

async function end(
  queue: ReturnType<typeof createInspectionQueue>,
  verdict: HealthReport['verdict'],
  isClaimed: boolean,
): Promise<void> {
  const times = { checkedMs: clock.now(), factsMs: clock.now() };
  const ended = { ...(await queue.load(ID)), executorId: ID, verdict, ...times };
  await store.transaction().execute((tx) => queue.end(tx, ended, isClaimed));
}

const LOCAL = { forMs: 10 * MINUTE_MS, passMs: 1_000, intervalMs: MINUTE_MS };

it.each(['failed', 'withheld'] as const)(
  'inspects an executor that is %s soon, then after growing pauses',
  async (verdict) => {
    expect(await inspectionTimes(verdict, LOCAL)).toEqual([
      ...[0, 1, 2, 4, 8, 16, 32, 64],
      ...[124, 184, 244, 304, 364, 424, 484, 544],
    ]);
  },
);

it('inspects a passing executor at the regular interval, also after a failure', async () => {
  const minutes = Array.from({ length: 10 }, (_, at) => at * 60);
  expect(await inspectionTimes('verified', LOCAL)).toEqual(minutes);
  await inspectionTimes('failed', LOCAL);
  await clock.advance(MINUTE_MS);
  expect(await inspectionTimes('verified', LOCAL)).toEqual(minutes);
  // After a failure the executor is inspected again soon.
  expect((await inspectionTimes('failed', LOCAL)).slice(0, 4)).toEqual([0, 1, 2, 4]);
});

it('produces fewer than 3,000 documents in fourteen days for an executor that never passes', () => {
  let [pause, looksMade, ms]: [number | null, number, number] = [null, 0, 0];
  while (ms < 14 * DAY_MS) {
    pause = pauseAfter({ verdict: 'failed', isRegular: true, before: pause, intervalMs: 900_000 });
    looksMade += 1;
    ms += pause ?? 0;
  }
  expect(looksMade).toBeLessThan(2_100);
});

it('inspects an executor at once when its listing changes, and does not lengthen a pause after a requested check', async () => {
  await inspectionTimes('failed', LOCAL);
  const queue = createInspectionQueue({
    trust: TRUSTED_CLOCK,
    store,
    clock,
    holder: 'a',
    intervalMs: MINUTE_MS,
    pauseMs: 0,
  });
  expect(await queue.due()).toEqual([]);
  await queue.resetPauses([ID]);
  expect((await inspectionTimes('failed', LOCAL)).slice(0, 4)).toEqual([0, 1, 2, 4]);
  const before = await queue.load(ID);
  await end(queue, 'failed', false);
  expect(await queue.load(ID)).toEqual(before);
  await end(queue, 'verified', false);
  expect((await queue.load(ID)).pauseMs).toBeNull();
});

it('counts a third failure in a row only after a whole interval, unless the executor had failed before', () => {
  const intervalMs = 15 * MINUTE_MS;
  const countsAt = (
    verdict: HealthReport['verdict'] | null,
    times: readonly number[],
    startedMs = 0,
  ) => {
    let state = { transportFailures: 0, unreachableSinceMs: null as number | null, verdict };
    return times.map((minute) => {
      const nowMs = minute * MINUTE_MS;
      const at = { isAnswered: false, nowMs, startedMs, intervalMs };
      state = { ...state, ...reachabilityAfter(state, at) };
      return state.transportFailures;
    });
  };
  expect(countsAt('verified', [100, 101, 102, 114, 115, 116])).toEqual([1, 1, 1, 1, 2, 3]);
  expect(countsAt('withheld', [100, 101, 116])).toEqual([1, 1, 2]);
  expect(countsAt('failed', [100, 101, 102])).toEqual([1, 2, 3]);
  expect(countsAt(null, [100, 101, 102])).toEqual([1, 2, 3]);
  // The process started after the first failure.
  expect(countsAt('verified', [100, 200, 201, 215], 200 * MINUTE_MS)).toEqual([1, 1, 1, 2]);
  // The clock was set back.
  expect(countsAt('verified', [100, 10, 24, 25])).toEqual([1, 1, 1, 2]);
  const answered = { isAnswered: true, nowMs: 0, startedMs: 0, intervalMs };
  const lost = { transportFailures: 1, unreachableSinceMs: 5, verdict: 'withheld' as const };
  expect(reachabilityAfter(lost, answered)).toEqual({
    transportFailures: 0,
    unreachableSinceMs: null,
  });
});
