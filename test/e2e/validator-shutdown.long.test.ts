/** A validator that is stopped in the middle of checks: it ends soon, and the abandoned checks change no verdict. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { openSqlite } from '#shared/runtime/sqlite.ts';
import { type AgentFleet, startAgentFleet } from '../fakes/agents/agent-fleet.ts';
import { eventually } from '../fakes/eventually.ts';
import { createManualClock } from '../fakes/manual-clock.ts';
import { createTestMarket, type TestMarket, testSigner } from '../fakes/scenes/market-fixture.ts';
import { startValidatorProcess, type ValidatorProcess } from '../fakes/scenes/validator-process.ts';

const NODES = 6;
const ENDS_WITHIN_MS = 10_000;
/** Later the market's clock, which stands still, would differ too much from the real one. */
const AHEAD_MS = 20_000;

const home = mkdtempSync(join(tmpdir(), 'podwright-shutdown-'));
let market: TestMarket;
let fleet: AgentFleet;
let environment: Record<string, string>;
let validator: ValidatorProcess | null = null;

beforeAll(async () => {
  const startMs = systemClock.now() - NODES * 1_000 + AHEAD_MS;
  market = await createTestMarket({ clock: createManualClock(startMs) });
  const origin = await market.server.listen({ host: '127.0.0.1', port: 0 });
  fleet = await startAgentFleet(market, NODES);
  const seedFile = join(home, 'hotkey.seed');
  writeFileSync(seedFile, '01'.repeat(32), { mode: 0o600 });
  environment = {
    VALIDATOR_HOME: home,
    VALIDATOR_SEED_FILE: seedFile,
    VALIDATOR_CENTRAL_URL: `${origin}/api`,
    VALIDATOR_CENTRAL_HOTKEY: testSigner(5).hotkey,
    VALIDATOR_LIST_INTERVAL_S: '1',
    VALIDATOR_AGENT_TLS: 'off',
  };
});
afterAll(async () => {
  await validator?.end('SIGKILL');
  await fleet.close();
  await market.close();
  rmSync(home, { recursive: true });
});

function query(sql: string): Record<string, unknown>[] {
  const store = openSqlite(join(home, 'ledger.db'));
  try {
    return store.prepare(sql).all() as Record<string, unknown>[];
  } finally {
    store.close();
  }
}

it('ends within ten seconds while agents hang in the middle of a check, and checks the executors again', async () => {
  const go = Promise.withResolvers<void>();
  fleet.beforeProbe(() => go.promise);
  validator = await startValidatorProcess(environment);
  await eventually('every agent hangs in a check', () => fleet.probed.length === NODES);
  const beganMs = systemClock.monotonicMs();
  expect(await validator.end('SIGTERM')).toBe(0);
  const tookMs = systemClock.monotonicMs() - beganMs;
  process.stdout.write(`shutdown during ${NODES} checks took ${Math.round(tookMs)} ms\n`);
  expect(tookMs).toBeLessThan(ENDS_WITHIN_MS);
  expect(query('pragma integrity_check')).toEqual([{ integrity_check: 'ok' }]);
  for (const table of ['evidence', 'evidence_heads', 'passed_documents', 'outbox']) {
    expect([table, query(`select * from ${table}`)]).toEqual([table, []]);
  }
  const states = query(
    'select verdict, transport_failures, unreachable_since_ms, streaks_json, found_json, holder from inspections',
  );
  const untouched = {
    verdict: null,
    transport_failures: 0,
    unreachable_since_ms: null,
    streaks_json: '{}',
    found_json: '{}',
    holder: null,
  };
  expect(states).toEqual(Array.from({ length: NODES }, () => untouched));

  go.resolve();
  validator = await startValidatorProcess(environment);
  await eventually('every executor has passed', () => {
    const verdicts = query('select executor_id, verdict from evidence order by executor_id');
    const expected = fleet.ids.toSorted().map((executor_id) => ({ executor_id, verdict: 'ok' }));
    return JSON.stringify(verdicts) === JSON.stringify(expected);
  });
  expect(await validator.end('SIGTERM')).toBe(0);
});
