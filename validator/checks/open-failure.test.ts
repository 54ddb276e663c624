/** Failures found by trials stay open until a trial passes. */
import { expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { type Change, factsOf, NOW_MS, POLICY } from '../../test/fixtures/check-facts.ts';
import type { Facts } from './check.ts';
import type { Measured } from './measured.ts';
import { judgeAll } from './verdict.ts';

const ENFORCED = {
  modes: {
    pow_cpu: { mode: 'enforce' as const, from: null },
    rental_probe: { mode: 'enforce' as const, from: null },
  },
};

/** Judges a run that follows `before`, `ms` milliseconds after the first run. */
function after(before: ReturnType<typeof judgeAll> | null, change: Change, ms = 0) {
  const facts = factsOf({ ...change, checks: { ...ENFORCED, ...change.checks } });
  const { streaks = {}, found = {} } = before ?? {};
  const measured = { ...facts.measured, streaks, found };
  return judgeAll({ ...facts, measured, receivedMs: NOW_MS + ms }, 0);
}

const resultIn = ({ report }: ReturnType<typeof judgeAll>, id: string) =>
  report.checks.find((check) => check.check_id === id);

const proofOf = (change: Partial<NonNullable<Measured['proof']>>): Change => ({
  measured: {
    proof: {
      device: 'cpu',
      status: 'proven',
      reason: null,
      part: null,
      detail: '',
      parts: ['product'],
      ms: 10,
      wall_ms: 10,
      others: 0,
      expected_ms: null,
      roots: [],
      openings_hash: null,
      repeated: false,
      ...change,
    },
  },
});
const rentalOf = (change: Partial<NonNullable<Measured['rental']>>): Change => ({
  measured: {
    rental: {
      status: 'passed',
      step: null,
      detail: '',
      ms: 1,
      at_ms: 1,
      memory: null,
      pods: [],
      refused: false,
      repeated: false,
      ...change,
    },
  },
});
const portsOf = (reached: number): Change => ({
  measured: {
    ports: {
      asked: 300,
      opened: 300,
      reached,
      problem: null,
      refused: false,
      others: null,
      repeated: false,
    },
  },
});

const MISMATCH = proofOf({ status: 'failed', reason: 'POW_MISMATCH', part: 'product' });
const REMOVAL = rentalOf({ status: 'failed', step: 'remove', detail: 'still there' });

it.each<[string, string, Change, number, Change]>([
  ['pow_cpu', 'POW_MISMATCH', MISMATCH, 1, proofOf({})],
  ['rental_probe', 'RENTAL_PROBE_FAILED', REMOVAL, 1, rentalOf({})],
  ['ports', 'PORTS_CLOSED', portsOf(0), 2, portsOf(300)],
])('%s: %s stays open in runs without the trial', (id, reason, failing, times, passing) => {
  let run = after(null, failing);
  for (let time = 1; time < times; time += 1) run = after(run, failing);
  expect(run.report.verdict).toBe('failed');
  const without: Change[] = [{ rented: true }, {}, { rented: true }];
  for (const [at, change] of without.entries()) {
    run = after(run, change, (at + 1) * 1_000);
    expect(run.report.verdict).toBe('failed');
    expect(resultIn(run, id)).toMatchObject({ passed: false, reason_code: reason });
    expect(resultIn(run, id)?.message).toContain(`open since ${naiveUtc(NOW_MS)}Z`);
  }
  run = after(run, passing);
  expect([run.report.verdict, run.found]).toEqual(['verified', {}]);
  expect(after(run, { rented: true }).report.verdict).toBe('verified');
});

it('does not close an open failure when a new failure does not count yet', () => {
  const late = proofOf({ status: 'failed', reason: 'POW_TIMEOUT', part: 'product' });
  const run = after(after(null, MISMATCH), late, 1_000);
  expect(run.report.verdict).toBe('failed');
  expect(resultIn(run, 'pow_cpu')?.reason_code).toBe('POW_MISMATCH');
});

it('keeps a failure open if the agent does not answer, or if another agent answers', () => {
  const away: Facts = { ...factsOf(), inventory: null, transportError: 'no answer' };
  const found = after(null, MISMATCH).found;
  const gone = judgeAll({ ...away, measured: { ...away.measured, found } }, 0);
  expect([gone.report.verdict, gone.found]).toEqual(['withheld', found]);
  const strange = { inventory: { executor_id: '22222222-2222-4222-8222-222222222222' } };
  expect(after(after(null, MISMATCH), strange).found).toEqual(found);
});

it('closes a failure whose check requires nothing any more, and applies the present policy’s mode', () => {
  const egress = {
    registry: 'blocked',
    problem: 'no route',
    others: null,
    repeated: false,
  } as const;
  const blocked = { measured: { egress } };
  const failed = after(after(null, blocked), blocked);
  expect([failed.report.verdict, after(failed, {}).report.verdict]).toEqual(['failed', 'failed']);
  expect(after(failed, { checks: { egress_image: null } }).report.verdict).toBe('verified');
  const observed = { ...POLICY.modes, egress: { mode: 'observe' as const, from: null } };
  expect(after(failed, { checks: { modes: observed } }).report.verdict).toBe('verified');
});

const POD = '00000000-0000-4000-8000-0000000000aa';
const skippedBy = (pods: string[], podIds: string[] | undefined, repeated = false): Change => ({
  ...rentalOf({ status: 'not_run', detail: 'a pod is there', pods, repeated }),
  ...(podIds === undefined ? {} : { podIds }),
});

it('fails a host that prevents rental probes with an unrented pod three times in a row', () => {
  let run = after(null, skippedBy([POD], []));
  run = after(run, skippedBy([POD], []));
  expect([run.report.verdict, resultIn(run, 'rental_probe')?.passed]).toEqual(['verified', true]);
  // Repeated checks and checks without the central API's list of pods do not change the streak.
  run = after(run, skippedBy([POD], [], true));
  run = after(run, skippedBy([POD], undefined));
  expect(run.report.verdict).toBe('verified');
  run = after(run, skippedBy([POD], []));
  expect(run.report.verdict).toBe('failed');
  expect(resultIn(run, 'rental_probe')).toMatchObject({
    reason_code: 'RENTAL_PROBE_SKIPPED',
    measured: POD,
  });
  run = after(run, { rented: true });
  expect(run.report.verdict).toBe('failed');
  expect(after(run, rentalOf({})).report.verdict).toBe('verified');
});

it('ignores pods that are rented or are our own probes', () => {
  let run: ReturnType<typeof judgeAll> | null = null;
  for (let time = 0; time < 4; time += 1) run = after(run, skippedBy([POD], [POD]));
  const ours = skippedBy([POD], []);
  const known = { ...ours, measured: { ...ours.measured, own_pods: [POD] } };
  for (let time = 0; time < 4; time += 1) run = after(run, known);
  expect([run?.report.verdict, run?.streaks]).toEqual(['verified', {}]);
});

it('measures a slow start again before it counts', () => {
  const slow = (repeated = false) =>
    rentalOf({ status: 'failed', step: 'ready', detail: 'still starting', repeated });
  const once = after(null, slow());
  expect(once.report.verdict).toBe('withheld');
  expect(after(once, slow(true), 1_000).report.verdict).toBe('withheld');
  expect(after(once, slow(), 1_000).report.verdict).toBe('failed');
  expect(after(once, rentalOf({}), 1_000).report.verdict).toBe('verified');
});
