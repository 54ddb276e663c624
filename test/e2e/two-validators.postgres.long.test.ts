/**
 * Two processes of one validator on one evidence store: they share the executors, and each takes over the work of the
 * other if that is killed.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { openEvidenceStore } from '../../validator/store/evidence-store.ts';
import type { EvidenceStore } from '../../validator/store/tables.ts';
import { type AgentFleet, startAgentFleet } from '../fakes/agents/agent-fleet.ts';
import { eventually } from '../fakes/eventually.ts';
import { createManualClock } from '../fakes/manual-clock.ts';
import { createEmptyPostgresDatabase } from '../fakes/scenes/central-database.ts';
import { createTestMarket, type TestMarket, testSigner } from '../fakes/scenes/market-fixture.ts';
import { startValidatorProcess, type ValidatorProcess } from '../fakes/scenes/validator-process.ts';

const NODES = 20;
const AT_ONCE = 4;
const AHEAD_MS = 20_000;
/** Time limit of a takeover; the claims of a killed process expire after twelve seconds. */
const TAKEN_OVER_WITHIN_MS = 40_000;

const folder = mkdtempSync(join(tmpdir(), 'podwright-validators-'));
let market: TestMarket;
let fleet: AgentFleet;
let store: EvidenceStore;
let environment: Record<string, string>;
const validators: ValidatorProcess[] = [];

beforeAll(async () => {
  // Adding the nodes advances the market's clock by a second per node. Afterwards the clock stands still: it is ahead
  // of the real one at first and behind it at the end. A difference of up to half a minute is accepted.
  const startMs = systemClock.now() - NODES * 1_000 + AHEAD_MS;
  market = await createTestMarket({ clock: createManualClock(startMs) });
  const origin = await market.server.listen({ host: '127.0.0.1', port: 0 });
  fleet = await startAgentFleet(market, NODES);
  const database = await createEmptyPostgresDatabase();
  store = await openEvidenceStore(database);
  const seedFile = join(folder, 'hotkey.seed');
  writeFileSync(seedFile, '01'.repeat(32), { mode: 0o600 });
  environment = {
    VALIDATOR_DATABASE: database,
    VALIDATOR_SEED_FILE: seedFile,
    VALIDATOR_CENTRAL_URL: `${origin}/api`,
    VALIDATOR_CENTRAL_HOTKEY: testSigner(5).hotkey,
    VALIDATOR_LIST_INTERVAL_S: '1',
    VALIDATOR_AGENT_TLS: 'off',
    VALIDATOR_CHECKS_AT_ONCE: String(AT_ONCE),
  };
});
afterAll(async () => {
  await Promise.all(validators.map((validator) => validator.end('SIGKILL')));
  await store.destroy();
  await fleet.close();
  await market.close();
  rmSync(folder, { recursive: true });
});

async function start(home: string): Promise<ValidatorProcess> {
  const validator = await startValidatorProcess({
    ...environment,
    VALIDATOR_HOME: join(folder, home),
  });
  validators.push(validator);
  return validator;
}

const evidenceOf = async () =>
  (await store.selectFrom('evidence').select('executor_id').orderBy('executor_id').execute()).map(
    ({ executor_id }) => executor_id,
  );
const holders = async () =>
  (await store.selectFrom('inspections').select('holder').distinct().execute()).flatMap(
    ({ holder }) => holder ?? [],
  );

it('two validator processes share the executors, probe each once, and take over the work of a killed process', async () => {
  const go = Promise.withResolvers<void>();
  fleet.beforeProbe(() => go.promise);
  const [first] = await Promise.all([start('first'), start('second')]);
  await eventually('both processes work', async () => (await holders()).length === 2);
  await eventually('every probe slot is used', () => fleet.probed.length === 2 * AT_ONCE);
  expect(new Set(fleet.probed).size).toBe(2 * AT_ONCE);
  await first.end('SIGKILL');
  go.resolve();
  await eventually(
    'every executor was checked',
    async () => (await evidenceOf()).length >= NODES,
    TAKEN_OVER_WITHIN_MS,
  );
  expect(await evidenceOf()).toEqual(fleet.ids.toSorted());
  // Only the executors that the killed process was probing were probed twice.
  expect(fleet.probed.length).toBe(NODES + AT_ONCE);
  await eventually('the central API has every report', async () => {
    const states = await market.ports.db.selectFrom('executors').select('state').execute();
    return states.every(({ state }) => state === 'verified');
  });
});
