import { afterEach, beforeEach, expect, it } from 'vitest';
import { createManualClock, type ManualClock } from '../../test/fakes/manual-clock.ts';
import { checkRun } from '../../test/fixtures/check-run.ts';
import { executorId } from '../../test/fixtures/cycle-set.ts';
import { inventoryOf } from '../../test/fixtures/inventory.ts';
import { deadlineFor } from '../inspection/proof/challenge.ts';
import { openEvidenceStore } from '../store/evidence-store.ts';
import type { EvidenceStore } from '../store/tables.ts';
import type { Facts } from './check.ts';
import type { GpuProofFacts, ProofFacts } from './measured.ts';
import { baselineOf, createProofBaselines, type ProofBaselines } from './proof-baseline.service.ts';

const START_MS = 1_800_000_000_000;
const DAY_MS = 86_400_000;

let clock: ManualClock;
let store: EvidenceStore;
let baselines: ProofBaselines;
beforeEach(async () => {
  clock = createManualClock(START_MS);
  store = await openEvidenceStore(':memory:');
  baselines = createProofBaselines({ store, clock });
});
afterEach(() => store.destroy());

const inventory = inventoryOf({ executorId: executorId(1), collectedMs: START_MS, gpuCount: 1 });

/** Facts of an executor whose proofs took `ms`. */
function facts(number: number, ms: number, change: Partial<Facts> = {}): Facts {
  const run = checkRun({ atMs: START_MS, number });
  const timed = {
    ms,
    wall_ms: ms,
    expected_ms: null,
    others: 0,
    reason: null,
    detail: '',
    repeated: false,
  };
  const proof: ProofFacts = {
    ...timed,
    device: 'cpu',
    status: 'proven',
    part: null,
    parts: ['product'],
    roots: [],
    openings_hash: null,
  };
  const gpu_proof: GpuProofFacts = { ...timed, device: 'gpu', status: 'proven', cards: [] };
  const measured = { ...run.facts.measured, proof, gpu_proof };
  return { ...run.facts, measured, ...change };
}

const expected = (number: number, device: 'cpu' | 'gpu' = 'cpu') =>
  baselines.expected(executorId(number), inventory, device);

it('records proof times by executor and hardware, also across restarts', async () => {
  for (let time = 0; time < 4; time += 1) await baselines.record(facts(1, 1_000));
  expect(await expected(1)).toEqual({ modelMs: null, ownMs: 1_000, others: 0 });
  await baselines.record(facts(1, 1_100));
  baselines = createProofBaselines({ store, clock });
  for (const device of ['cpu', 'gpu'] as const) {
    expect(await expected(1, device)).toEqual({ modelMs: 1_030, ownMs: 1_030, others: 0 });
    expect(await expected(2, device)).toEqual({ modelMs: 1_030, ownMs: null, others: 1 });
  }
});

it('uses the median of executors, so that one executor cannot change the baseline', async () => {
  for (const [number, ms] of [
    [1, 1_000],
    [2, 1_100],
    [3, 1_700],
  ] as const) {
    for (let time = 0; time < 5; time += 1) await baselines.record(facts(number, ms));
  }
  expect(await expected(3)).toEqual({ modelMs: 1_100, ownMs: 1_700, others: 2 });
  expect(baselineOf([{ mean_ms: 1_000, samples: 4 }])).toBeNull();
});

it('ignores times outside the limits, repeated proofs and failed proofs', async () => {
  for (let time = 0; time < 5; time += 1) await baselines.record(facts(1, 1_000));
  await baselines.record(facts(1, 1_900));
  await baselines.record(facts(2, 1_900));
  await baselines.record(facts(2, 400));
  const again = facts(1, 1_200);
  const { proof, gpu_proof } = again.measured;
  if (proof === null || gpu_proof === null) throw new Error('no proofs');
  const repeated = { proof: { ...proof, repeated: true }, gpu_proof: null };
  await baselines.record({ ...again, measured: { ...again.measured, ...repeated } });
  const failed = { proof: { ...proof, status: 'failed' as const }, gpu_proof: null };
  await baselines.record({ ...again, measured: { ...again.measured, ...failed } });
  expect(await expected(1)).toEqual({ modelMs: 1_000, ownMs: 1_000, others: 0 });
  expect(await expected(2)).toMatchObject({ ownMs: null });
});

it('lowers the baseline of a single host that was busy at first', async () => {
  for (let time = 0; time < 5; time += 1) await baselines.record(facts(1, 1_000));
  for (let time = 0; time < 10; time += 1) await baselines.record(facts(1, 400));
  expect((await expected(1)).modelMs).toBeLessThan(450);
});

it('starts a new mean for other hardware, and deletes executors without recent proofs', async () => {
  for (let time = 0; time < 5; time += 1) await baselines.record(facts(1, 1_000));
  const other = { ...inventory, cpu: { ...inventory.cpu, cores: inventory.cpu.cores + 1 } };
  await baselines.record(facts(1, 9_000, { inventory: other }));
  expect(await expected(1)).toEqual({ modelMs: null, ownMs: null, others: 0 });
  expect(await baselines.expected(executorId(1), other, 'cpu')).toMatchObject({ ownMs: 9_000 });
  await clock.advance(31 * DAY_MS);
  await baselines.record(facts(2, 1_000));
  expect(await store.selectFrom('proof_paces').select('executor_id').distinct().execute()).toEqual([
    { executor_id: executorId(2) },
  ]);
});

it.each([
  [null, null, 300_000],
  [1_000, null, 10_000],
  [10_000, null, 40_000],
  [10_000, 20_000, 80_000],
  [200_000, null, 300_000],
])(
  'derives the deadline from the model’s time %s and the executor’s own time %s',
  (modelMs, ownMs, deadline) => {
    expect(deadlineFor({ modelMs, ownMs })).toBe(deadline);
  },
);
