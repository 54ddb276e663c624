import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import { createManualClock, type ManualClock } from '../../test/fakes/manual-clock.ts';
import { type CheckRunOptions, checkRun } from '../../test/fixtures/check-run.ts';
import { executorId, goldenPolicy, hotkey } from '../../test/fixtures/cycle-set.ts';
import { createEvidence } from '../evidence/evidence.service.ts';
import { openEvidenceStore } from '../store/evidence-store.ts';
import type { EvidenceStore } from '../store/tables.ts';
import { createCycles } from './cycle.service.ts';
import { newestCycles, readCycle } from './cycle.store.ts';
import type { CycleEntry } from './cycle-set.ts';

const log = createLog({ name: 'test', level: 'silent' });
const signer = createSigner(new Uint8Array(32).fill(1));
const CYCLE_MS = 600_000;
/** The clock starts at the beginning of a cycle. */
const START_MS = 1_800_000_000_000;

let store: EvidenceStore;
let clock: ManualClock;
beforeEach(async () => {
  store = await openEvidenceStore(':memory:');
  clock = createManualClock(START_MS);
});
afterEach(() => store.destroy());

/** Records a check now, of executor 1 by default. */
const check = (change: Omit<CheckRunOptions, 'atMs'> = {}, policy = goldenPolicy()) =>
  createEvidence({ store, signer, trusted: [signer], clock, log, policy }).record(
    checkRun({ atMs: clock.now(), ...change }),
  );

const cyclesOf = (policy = goldenPolicy(), cycleMs = CYCLE_MS) =>
  createCycles({ store, clock, log, policy, cycleMs });

/** Records one check per cycle, then closes all cycles. */
async function pass(verdicts: readonly CheckRunOptions['verdict'][], policy = goldenPolicy()) {
  for (const verdict of verdicts) {
    if (verdict !== undefined) await check({ verdict }, policy);
    await clock.advance(CYCLE_MS);
  }
  await clock.advance(5_000);
  await cyclesOf(policy).closeEnded();
  await clock.advance(CYCLE_MS - 5_000);
}

async function entries(): Promise<CycleEntry[]> {
  const cycles = [];
  for (const number of await newestCycles(store, 1_000)) {
    cycles.push(await readCycle(store, number));
  }
  return cycles.flatMap((cycle) => cycle?.entries ?? []);
}

describe('a cycle', () => {
  it('is closed five seconds after its end', async () => {
    await check();
    await clock.advance(CYCLE_MS + 4_999);
    expect(await cyclesOf().closeEnded()).toBe(0);
    await clock.advance(1);
    expect([await cyclesOf().closeEnded(), await cyclesOf().closeEnded()]).toEqual([1, 0]);
  });

  it('uses each executor’s last verdict that is not withheld', async () => {
    for (const [number, verdicts] of [
      ['failed', 'ok'],
      ['ok', 'failed', 'withheld'],
      ['withheld', 'withheld'],
    ].entries()) {
      for (const verdict of verdicts) {
        await check({ number: number + 1, verdict: verdict as 'ok' });
        await clock.advance(1_000);
      }
    }
    await pass([]);
    await clock.advance(CYCLE_MS);
    await cyclesOf().closeEnded();
    expect((await entries()).map((entry) => [entry.executor_id, entry.verdict])).toEqual([
      [executorId(1), 'ok'],
      [executorId(2), 'failed'],
      [executorId(3), 'withheld'],
    ]);
  });

  it('copies all other fields from the document of that verdict', async () => {
    const id = await check({ owner: 5, rented: true, gpus: 4, collateral: false });
    await pass([undefined]);
    expect(await entries()).toEqual([
      {
        executor_id: executorId(1),
        hotkey: hotkey(5),
        evidence_id: id,
        verdict: 'ok',
        simulated: false,
        gpu_model: 'NVIDIA H100 80GB HBM3',
        gpu_count: 4,
        rented: true,
        uptime_minutes: 10,
        runtime_proven: false,
        collateral: false,
        failure_ppm: 0,
        price_uusd: 2_000_000,
        bandwidth_mbit: null,
      },
    ]);
  });

  it('is skipped if nothing was inspected', async () => {
    await pass(['ok', undefined, undefined, 'ok']);
    expect(await newestCycles(store, 10)).toEqual([1, 2]);
  });

  it('begins at the end of the previous cycle when the cycle length changes', async () => {
    await pass(['ok']);
    await check();
    await clock.advance(3 * CYCLE_MS);
    expect(await cyclesOf(goldenPolicy(), 2 * CYCLE_MS).closeEnded()).toBe(1);
    expect((await entries()).map((entry) => entry.uptime_minutes)).toEqual([
      10,
      expect.any(Number),
    ]);
  });

  it('leaves out damaged documents', async () => {
    await check();
    await check({ number: 2 });
    const [row] = await store.selectFrom('evidence').selectAll().execute();
    await store
      .deleteFrom('evidence')
      .where('seq', '=', 1)
      .where('executor_id', '=', executorId(1))
      .execute();
    if (row !== undefined) {
      await store
        .insertInto('evidence')
        .values({ ...row, document: '{}' })
        .execute();
    }
    await pass([undefined]);
    expect((await entries()).map((entry) => entry.executor_id)).toEqual([executorId(2)]);
  });
});

describe('uptime', () => {
  const policy = goldenPolicy({ uptime: { floor_ppm: 50_000, full_minutes: 40 } });
  const minutes = async () => (await entries()).map((entry) => entry.uptime_minutes);

  it('counts the good time in the last measured cycles', async () => {
    await pass(['ok', 'failed', 'ok', 'withheld', 'ok', 'ok', 'ok', 'failed'], policy);
    expect(await minutes()).toEqual([10, 10, 20, 20, 30, 30, 40, 30]);
  });

  it('is not reduced by an outage of the validator, however long', async () => {
    await pass(['ok', 'ok', 'ok'], policy);
    await clock.advance(100 * CYCLE_MS);
    await pass(['ok'], policy);
    expect(await minutes()).toEqual([10, 20, 30, 40]);
  });
});

it('keeps a moving average of failures that every passed check lowers', async () => {
  const policy = goldenPolicy({ failure_keep_ppm: 500_000 });
  await pass(['ok', 'failed', 'withheld', 'failed', 'ok', 'ok'], policy);
  expect((await entries()).map((entry) => entry.failure_ppm)).toEqual([
    0, 500_000, 500_000, 750_000, 375_000, 187_500,
  ]);
});

it('deletes old cycles with their entries', async () => {
  await pass(['ok', 'ok', 'ok']);
  await cyclesOf().deleteBefore(START_MS + 2 * CYCLE_MS + 1);
  expect(await newestCycles(store, 10)).toEqual([3]);
  expect(await store.selectFrom('cycle_entries').select('cycle').execute()).toEqual([{ cycle: 3 }]);
});
