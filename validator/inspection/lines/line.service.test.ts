import { afterEach, beforeEach, expect, it } from 'vitest';
import { ApiError } from '#shared/runtime/errors.ts';
import { createHeartbeat, type Heartbeat } from '#shared/runtime/liveness.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { eventually } from '../../../test/fakes/eventually.ts';
import { createManualClock, type ManualClock } from '../../../test/fakes/manual-clock.ts';
import { createTestStore } from '../../../test/fakes/scenes/test-evidence-store.ts';
import { checkRun } from '../../../test/fixtures/check-run.ts';
import type { EvidenceStore } from '../../store/tables.ts';
import { createHostLocks } from '../host-locks.ts';
import { createLines } from './line.service.ts';
import { unmeasuredLine } from './line.state.ts';
import { listLines, saveLine } from './line.store.ts';
import { FULL_LINE } from './measure-line.ts';

const HOUR_MS = 3_600_000;
const log = createLog({ name: 'test', level: 'silent' });

let store: EvidenceStore;
let clock: ManualClock;
let stopping: AbortController;
let holdsLease: boolean;
let heartbeat: Heartbeat;
let waiting: { id: string; refuse(): void }[];
beforeEach(async () => {
  [store, clock, waiting] = [await createTestStore(), createManualClock(), []];
  [stopping, holdsLease] = [new AbortController(), true];
  heartbeat = createHeartbeat(clock);
});
afterEach(() => store.destroy());

const executor = (number: number, rented = false) =>
  checkRun({ number, atMs: 1_000, rented }).facts.executor;

/** Starts measurements against agents that wait until the test continues and then refuse. */
function lines() {
  return createLines({
    store,
    clock,
    random: systemRandom,
    size: FULL_LINE,
    intervalMs: HOUR_MS,
    log,
    lowKbit: 100_000,
    hosts: createHostLocks({ store, clock, log, holder: 'this' }),
    beatAfter: heartbeat.beatAfter,
    holdsLease: async () => holdsLease,
    connectTo:
      ({ id }) =>
      () =>
        new Promise((_, reject) => {
          const refuse = () => reject(new ApiError('conflict', 'busy'));
          waiting.push({ id, refuse });
        }),
  });
}

it('measures two lines at a time, least recently tried first, and skips rented executors', async () => {
  const [first, second, third] = [executor(1), executor(2), executor(3)];
  await saveLine(store, { ...unmeasuredLine(first.id), tried_ms: clock.now() - HOUR_MS });
  const pass = lines().runOnce([first, second, third, executor(4, true)], stopping.signal);
  await eventually('two', () => waiting.length === 2);
  // Two measurements begin at once; their order depends on the database.
  const both = new Set([second.id, third.id]);
  expect(new Set(waiting.map(({ id }) => id))).toEqual(both);
  await clock.advance(HOUR_MS);
  waiting[0]?.refuse();
  await eventually('three', () => waiting.length === 3);
  // The pass continues.
  expect(heartbeat.ageMs()).toBe(0);
  for (const { refuse } of waiting) refuse();
  await pass;
  expect(waiting.map(({ id }) => id).slice(2)).toEqual([first.id]);
  holdsLease = false;
  await lines().runOnce([executor(5)], stopping.signal);
  holdsLease = true;
  // No executor is due now.
  await lines().runOnce([first, second, third], stopping.signal);
  expect(waiting).toHaveLength(3);
});

it('stops at once without measuring waiting executors or storing results', async () => {
  const executors = [executor(1), executor(2), executor(3)];
  const pass = lines().runOnce(executors, stopping.signal);
  await eventually('two', () => waiting.length === 2);
  stopping.abort();
  for (const { refuse } of waiting) refuse();
  await pass;
  expect([waiting.length, (await listLines(store)).size]).toEqual([2, 0]);
});

it('provides the measurement, the fastest recent measurement of other executors, and whether the measurement was used before', async () => {
  const [own, other] = [executor(1), executor(2)];
  const service = lines();
  expect(await service.facts(own.id)).toBeNull();
  const measured = { samples: 1, measured_ms: clock.now(), tried_ms: clock.now() };
  await saveLine(store, { ...unmeasuredLine(own.id), ...measured, down_kbit: 5 });
  await saveLine(store, { ...unmeasuredLine(other.id), ...measured, last_down_kbit: 700 });
  expect(await service.facts(own.id)).toMatchObject({
    down_kbit: 5,
    others_down_kbit: 700,
    others_up_kbit: 0,
    repeated: false,
  });
  expect(await service.facts(own.id)).toMatchObject({ repeated: true });
  for (const tried_ms of [clock.now(), clock.now() + 1]) {
    const before = (await listLines(store)).get('broken') ?? unmeasuredLine('broken');
    await saveLine(store, { ...before, tried_ms });
    expect(await service.facts('broken')).toMatchObject({ samples: 0, repeated: false });
    expect(await service.facts('broken')).toMatchObject({ repeated: true });
  }
  await clock.advance(25 * HOUR_MS);
  expect(await service.facts(own.id)).toMatchObject({ others_down_kbit: 0 });
});
