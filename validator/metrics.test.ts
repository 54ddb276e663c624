import { afterEach, beforeEach, expect, it } from 'vitest';
import type { HealthReport } from '#shared/api/central/validator-routes.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createManualClock, type ManualClock } from '../test/fakes/manual-clock.ts';
import { testSigner } from '../test/fakes/scenes/market-fixture.ts';
import { TRUSTED_CLOCK } from '../test/fakes/trusted-clock.ts';
import { checkRun } from '../test/fixtures/check-run.ts';
import { goldenPolicy } from '../test/fixtures/cycle-set.ts';
import { createValidator } from './app.ts';
import { readCheckPolicy } from './checks/check-policy.ts';
import { createValidatorMetrics, type ValidatorMetrics } from './metrics.ts';
import { openEvidenceStore } from './store/evidence-store.ts';
import { enqueue, parkMessage } from './store/outbox.store.ts';
import type { EvidenceStore } from './store/tables.ts';

const START_MS = 1_800_000_000_000;
const HOUR_MS = 3_600_000;

let clock: ManualClock;
let store: EvidenceStore;
let metrics: ValidatorMetrics;
beforeEach(async () => {
  clock = createManualClock(START_MS);
  store = await openEvidenceStore(':memory:');
  metrics = createValidatorMetrics({
    trust: TRUSTED_CLOCK,
    clock,
    store,
    hotkey: testSigner(1).hotkey,
    signaturesWaiting: () => 3,
  });
});
afterEach(() => store.destroy());

type Verdict = HealthReport['verdict'];

function reportOf(verdict: Verdict, reason: string | null = null): HealthReport {
  const { report } = checkRun({ atMs: START_MS });
  const checks = report.checks.map((check) =>
    check.check_id === 'agent_version' ? { ...check, reason_code: reason } : check,
  );
  return { ...report, verdict, checks };
}

/** Returns the metrics' lines without the prefix; histograms as their sums. */
async function shown(...names: string[]): Promise<string[]> {
  const lines = (await metrics.render())
    .split('\n')
    .map((line) => line.replace(/^podwright_validator_/, ''));
  return lines.filter((line) => names.some((name) => line.startsWith(name)));
}

it('counts checks, verdicts, passes and proofs; agents cannot choose label values', async () => {
  metrics.checked('one', reportOf('verified'));
  metrics.checked('two', reportOf('failed', 'AGENT_OUTDATED'));
  metrics.checked('three', reportOf('withheld', 'text chosen by an agent'));
  metrics.checked('gone', reportOf('withheld'));
  metrics.passed(4_000, new Set(['one', 'two', 'three']));
  metrics.proven('cpu', 2_000);
  metrics.proven('gpu', 30_000);
  await clock.advance(HOUR_MS);
  const checks = await shown('checks_total{check="agent_version"');
  expect(checks.filter((line) => !line.endsWith(' 0'))).toEqual([
    'checks_total{check="agent_version",reason=""} 2',
    'checks_total{check="agent_version",reason="AGENT_OUTDATED"} 1',
    'checks_total{check="agent_version",reason="other"} 1',
  ]);
  expect(await shown('verdicts_total{', 'executors{', 'withheld_ratio')).toEqual([
    'verdicts_total{verdict="verified"} 1',
    'verdicts_total{verdict="failed"} 1',
    'verdicts_total{verdict="withheld"} 2',
    'executors{verdict="verified"} 1',
    'executors{verdict="failed"} 1',
    'executors{verdict="withheld"} 1',
    `withheld_ratio ${1 / 3}`,
  ]);
  expect(await shown('cycle_seconds_sum', 'proof_seconds_sum', 'signer_queue')).toEqual([
    'cycle_seconds_sum 4',
    'proof_seconds_sum{device="cpu"} 2',
    'proof_seconds_sum{device="gpu"} 30',
    'signer_queue 3',
  ]);
  expect(await shown('executor_update_lag_seconds')).toEqual(['executor_update_lag_seconds 3600']);
  metrics.checked('two', reportOf('verified'));
  expect(await shown('executor_update_lag_seconds')).toEqual(['executor_update_lag_seconds 0']);
});

it('exports counters with 0 before the first event', async () => {
  expect(await shown('checks_total{check="agent_version"', 'verdicts_total{')).toEqual(
    expect.arrayContaining([
      'checks_total{check="agent_version",reason=""} 0',
      'checks_total{check="agent_version",reason="AGENT_OUTDATED"} 0',
      'verdicts_total{verdict="withheld"} 0',
    ]),
  );
  expect(await shown('proof_seconds_count')).toEqual([
    'proof_seconds_count{device="cpu"} 0',
    'proof_seconds_count{device="gpu"} 0',
  ]);
});

it('reports outbox and weights from the evidence store', async () => {
  const names = ['outbox_', 'weights_posted_timestamp_seconds'];
  const empty = await shown(...names);
  expect(empty.toSorted()).toEqual([
    'outbox_age_seconds 0',
    'outbox_messages{state="parked"} 0',
    'outbox_messages{state="waiting"} 0',
    'weights_posted_timestamp_seconds 0',
  ]);
  for (const subject of ['1', '2', '3']) {
    await enqueue(store, {
      kind: 'set-weights',
      subject,
      partitionKey: 'set-weights',
      rank: 0,
      body: '{}',
      next_ms: START_MS + 20_000,
    });
  }
  const given = { parkedMs: START_MS, reason: 'refused' };
  await parkMessage(store, { seq: 1, kind: 'set-weights', attempts: 1 }, given);
  const texts = { input_json: '', policy_json: '', input_hash: '', policy_hash: '' };
  const row = { ...texts, result_hash: '', payload_json: '', computed_ms: START_MS };
  await store
    .insertInto('epochs')
    .values({ ...row, number: 1, state: 'confirmed' })
    .execute();
  const later = { ...row, number: 2, state: 'queued' as const, computed_ms: START_MS + 20_000 };
  await store.insertInto('epochs').values(later).execute();
  await clock.advance(60_000);
  expect((await shown(...names)).toSorted()).toEqual([
    'outbox_age_seconds 40',
    'outbox_messages{state="parked"} 1',
    'outbox_messages{state="waiting"} 2',
    `weights_posted_timestamp_seconds ${START_MS / 1_000}`,
  ]);
});

it.each([false, true])(
  'are served on a separate listener if one is configured: %s',
  async (isSeparate) => {
    const validator = createValidator({
      clock,
      store,
      random: systemRandom,
      signer: testSigner(1),
      log: createLog({ name: 'test', level: 'silent' }),
      centralUrl: 'http://127.0.0.1:9/api',
      centralHotkey: testSigner(5).hotkey,
      proof: null,
      policy: { acceptSimulated: false, checks: readCheckPolicy() },
      weightSettings: {
        policy: goldenPolicy(),
        metagraph: null,
        embedded: false,
        cycleMs: HOUR_MS,
        epochMs: HOUR_MS,
        retentionDays: 14,
        verdictDays: null,
      },
      checkIntervalMs: HOUR_MS,
      listIntervalMs: HOUR_MS,
      separateMonitoring: isSeparate,
    });
    const main = async (url: string) => (await validator.server.inject({ url })).statusCode;
    const own = async (url: string) => (await validator.monitoring?.inject({ url }))?.statusCode;
    expect(await main('/metrics')).toBe(isSeparate ? 404 : 200);
    expect(await own('/metrics')).toBe(isSeparate ? 200 : undefined);
    for (const url of ['/healthz', '/version']) {
      expect([await main(url), await own(url)]).toEqual([200, isSeparate ? 200 : undefined]);
    }
    await validator.close();
  },
);
