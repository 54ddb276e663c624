/** Checks while the central API is unavailable, and after a crash of the validator during a check. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { type CheckRequest, HealthReport } from '#shared/api/central/validator-routes.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createSignedFetch } from '#shared/signing/signed-fetch.ts';
import { type AgentFleet, startAgentFleet } from '../../test/fakes/agents/agent-fleet.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { startTcpGate, type TcpGate } from '../../test/fakes/faults/tcp-gate.ts';
import {
  createTestMarket,
  type TestMarket,
  testSigner,
} from '../../test/fakes/scenes/market-fixture.ts';
import { goldenPolicy } from '../../test/fixtures/cycle-set.ts';
import { createValidator, type Validator } from '../app.ts';
import { readCheckPolicy } from '../checks/check-policy.ts';
import { openEvidenceStore } from '../store/evidence-store.ts';
import type { EvidenceStore } from '../store/tables.ts';
import type { Coordinates } from './round-trip.ts';

const NODES = 4;
const CYCLE_MS = 900_000;
const log = createLog({ name: 'test', level: 'silent' });

let folder: string;
let market: TestMarket;
let fleet: AgentFleet;
let gate: TcpGate;
let storeFile: string;
let validators: { validator: Validator; store: EvidenceStore }[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-health-'));
  market = await createTestMarket();
  const origin = await market.server.listen({ host: '127.0.0.1', port: 0 });
  gate = await startTcpGate(Number(new URL(origin).port));
  fleet = await startAgentFleet(market, NODES);
});
afterAll(async () => {
  await fleet.close();
  await gate.close();
  await market.close();
  rmSync(folder, { recursive: true });
});
beforeEach(async () => {
  storeFile = join(folder, `${systemRandom.uuid()}.db`);
  const unknown = { state: 'queued', verdict_at: null } as const;
  await market.ports.db.updateTable('executors').set(unknown).execute();
  fleet.probed.length = 0;
  fleet.setSound(true);
  fleet.setAway(false);
  fleet.beforeProbe(async () => undefined);
  gate.setOpen(true);
});
afterEach(async () => {
  for (const { validator, store } of validators) {
    await validator.close();
    await store.destroy();
  }
  validators = [];
});

/** Starts a validator with this store. By default it does not know its own coordinates. */
async function start(coordinates: Coordinates | null = null) {
  const store = await openEvidenceStore(storeFile);
  const validator = createValidator({
    clock: market.clock,
    random: systemRandom,
    log,
    signer: market.validator,
    store,
    centralUrl: `http://127.0.0.1:${gate.port}/api`,
    centralHotkey: testSigner(5).hotkey,
    policy: { acceptSimulated: true, checks: readCheckPolicy() },
    proof: null,
    coordinates,
    weightSettings: {
      policy: goldenPolicy(),
      metagraph: null,
      embedded: true,
      cycleMs: CYCLE_MS,
      epochMs: CYCLE_MS,
      retentionDays: 14,
      verdictDays: null,
    },
    checkIntervalMs: CYCLE_MS,
    agentTls: 'off',
    listIntervalMs: CYCLE_MS,
  });
  validators.push({ validator, store });
  return { validator, store };
}

const statesAtCentral = async () =>
  (await market.ports.db.selectFrom('executors').select('state').execute()).map(
    ({ state }) => state,
  );
const waiting = (store: EvidenceStore) => store.selectFrom('outbox').selectAll().execute();
const evidenceOf = async (store: EvidenceStore) =>
  (await store.selectFrom('evidence').select('executor_id').execute()).map(
    ({ executor_id }) => executor_id,
  );

it('delivers the last verdict of each executor after an outage of an hour', async () => {
  const { validator, store } = await start();
  await validator.runOnce();
  expect(await statesAtCentral()).toEqual(Array(NODES).fill('verified'));
  gate.setOpen(false);
  for (let cycle = 1; cycle <= 4; cycle += 1) {
    fleet.setSound(cycle === 1);
    await market.clock.advance(CYCLE_MS);
    await validator.runOnce();
  }
  expect([await statesAtCentral(), (await waiting(store)).length]).toEqual([
    Array(NODES).fill('verified'),
    NODES,
  ]);
  const looks = await evidenceOf(store);
  expect(looks.length).toBe(5 * NODES);
  gate.setOpen(true);
  await market.clock.advance(300_000);
  await validator.runOnce();
  expect([await statesAtCentral(), await waiting(store)]).toEqual([
    Array(NODES).fill('failed'),
    [],
  ]);
});

it('does not replace an undelivered verdict by a withheld one', async () => {
  const { validator, store } = await start();
  await validator.runOnce();
  gate.setOpen(false);
  fleet.setSound(false);
  for (let cycle = 1; cycle <= 2; cycle += 1) {
    await market.clock.advance(CYCLE_MS);
    await validator.runOnce();
  }
  fleet.setAway(true);
  await market.clock.advance(1_000);
  await validator.runOnce();
  const verdicts = (await waiting(store)).map(({ body }) => JSON.parse(body).report.verdict);
  expect(verdicts.toSorted()).toEqual([
    ...Array(NODES).fill('failed'),
    ...Array(NODES).fill('withheld'),
  ]);
  gate.setOpen(true);
  await market.clock.advance(300_000);
  await validator.runOnce();
  expect(await statesAtCentral()).toEqual(Array(NODES).fill('failed'));
});

it('delivers verdicts from before a restart without inspecting again', async () => {
  fleet.beforeProbe(async () => gate.setOpen(false));
  await (await start()).validator.runOnce();
  expect(await statesAtCentral()).toEqual(Array(NODES).fill('queued'));
  gate.setOpen(true);
  await market.clock.advance(5_000);
  const { validator, store } = await start();
  await validator.runOnce();
  expect(await statesAtCentral()).toEqual(Array(NODES).fill('verified'));
  expect([fleet.probed.length, await waiting(store)]).toEqual([NODES, []]);
});

it('completes a cycle after a crash without inspecting an executor twice', async () => {
  const first = await start();
  const [stuck = ''] = fleet.ids;
  const end = Promise.withResolvers<void>();
  fleet.beforeProbe(async (id) => {
    if (id === stuck) await end.promise;
  });
  const pass = first.validator.runOnce();
  await eventually('the inspection of the other nodes', async () => {
    return (await evidenceOf(first.store)).length === NODES - 1;
  });
  // Another process on the same file, as after kill -9; the answer to the first process arrives too late.
  fleet.beforeProbe(async () => undefined);
  const second = await start();
  await second.validator.runOnce();
  end.resolve();
  await pass;
  expect(fleet.probed.toSorted()).toEqual([stuck, ...fleet.ids].toSorted());
  expect((await evidenceOf(second.store)).toSorted()).toEqual(fleet.ids.toSorted());
  expect(await statesAtCentral()).toEqual(Array(NODES).fill('verified'));
  await market.clock.advance(CYCLE_MS + 5_000);
  await second.validator.runOnce();
  const cycle = await second.store
    .selectFrom('cycle_entries')
    .select(['executor_id', 'verdict'])
    .where('cycle', '=', 1)
    .orderBy('executor_id')
    .execute();
  expect(cycle).toEqual(
    fleet.ids.toSorted().map((executor_id) => ({ executor_id, verdict: 'ok' })),
  );
});

it('probes the requested GPUs and cores, skips rented hosts, and also reports to the central API', async () => {
  const { validator, store } = await start();
  const { clock, validator: signer } = market;
  const baseUrl = await validator.server.listen({ host: '127.0.0.1', port: 0 });
  const caller = { signer: testSigner(5), clock, random: systemRandom };
  const send = createSignedFetch({ baseUrl, audience: signer.hotkey, ...caller });
  const [id = ''] = fleet.ids;
  const check = async (request: CheckRequest) => {
    const path = `/v1/executors/${id}/check`;
    const signal = clock.deadline(60_000);
    const answer = await send({ method: 'POST', path, body: JSON.stringify(request), signal });
    return HealthReport.parse(await answer.json());
  };
  const request = { gpu_uuids: ['GPU-1'], cpu_count: 3, rental_in_progress: false };
  expect(await check(request)).toMatchObject({ verdict: 'verified' });
  expect([fleet.probed, fleet.lastProbe()]).toEqual([
    [id],
    { gpu_uuids: request.gpu_uuids, cpu_cores: request.cpu_count },
  ]);
  const rented = { ...request, rental_in_progress: true };
  expect(await check(rented)).toMatchObject({ verdict: 'verified' });
  expect(fleet.probed).toEqual([id]);
  await eventually('both reports are delivered', async () => (await waiting(store)).length === 0);
  expect(await evidenceOf(store)).toEqual([id, id]);
  expect((await statesAtCentral()).toSorted()).toEqual(['queued', 'queued', 'queued', 'verified']);
});

it.each([
  ['confirmed', { lat: 52.5, lon: 13.4 }],
  ['contradicted', { lat: -33.87, lon: 151.21 }],
])('reports round trips, after which the place of a node is %s', async (check, coordinates) => {
  const [id] = fleet.ids;
  const token = await market.logIn();
  const path = `/executors/${id}/location`;
  const body = { country_code: 'DE', lat: 52.52, lon: 13.405 };
  await market.portal('POST', path, { token, body });
  const { validator } = await start(coordinates);
  // The clock of the test stands still, so every handshake takes the minimum time that is reported.
  await validator.runOnce();
  expect((await market.portal('GET', path, { token })).body.data).toMatchObject({
    location_check: check,
    evidence: [
      { source: 'round_trip', detail: expect.stringContaining('0.01 ms: at most 2 km from') },
    ],
  });
});
