import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { CheckResult } from '#shared/api/central/validator-routes.ts';
import { signAccountProof } from '#shared/signing/account-proof.ts';
import { toHex } from '#shared/signing/sr25519.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import {
  type AddedNode,
  createTestMarket,
  type TestMarket,
  testSigner,
} from '../../../../test/fakes/scenes/market-fixture.ts';
import { watchDatabase } from '../../../../test/fakes/scenes/watched-database.ts';
import { testInventory } from '../../../../test/fixtures/host-inventory.ts';
import { createValidators } from './validator.service.ts';

const FAILED: CheckResult = {
  check_id: 'gpu.runtime',
  passed: false,
  reason_code: 'GPU_RUNTIME_DEVICE_FAULT',
  measured: 'no device',
  required: '2 devices',
  message: 'The GPUs cannot be used',
  remediation: 'Reload the driver',
  mode: 'enforce' as const,
  severity: 'error' as const,
  category: 'runtime' as const,
  fatal: false,
};

let market: TestMarket;
let node: AddedNode;

beforeEach(async () => {
  market = await createTestMarket();
  node = await market.addNode({ gpus: 2 });
});
afterEach(() => market.close());

async function listed(): Promise<number> {
  return (await market.call('GET', '/executors')).body.length;
}

async function slots() {
  return market.ports.db
    .selectFrom('gpu_slots')
    .select(['idx', 'gpu_uuid', 'pod_id'])
    .orderBy('idx')
    .execute();
}

async function verification() {
  const token = await market.logIn();
  return (await market.portal('GET', `/executors/${node.id}/verification`, { token })).body.data;
}

it('lists the nodes to check', async () => {
  const [row] = (await market.asValidator('/executors', {})).body;
  expect(row).toEqual({
    id: node.id,
    executor_ip_address: '127.0.0.1',
    executor_ip_port: String(node.port),
    uptime_in_minutes: null,
    miner_hotkey: market.provider.hotkey,
    gpu_type: 'NVIDIA H100 80GB HBM3',
    gpu_count: 2,
    gpu_uuids: [],
    rented: false,
    pod_ids: [],
    price_uusd: 2_200_000,
    collateral_deposited: false,
    provider_banned: false,
    paid_fees_uusd: 0,
    extra_incentive_eligible: false,
    maintenance_ms: null,
  });
  await market.report(node);
  const pod = (await market.rent(await market.renter(), node.id)).body;
  const [rented] = (await market.asValidator('/executors', {})).body;
  expect(rented).toMatchObject({
    pod_ids: [pod.id],
    rented: true,
    gpu_uuids: [{}, {}].map(() => expect.any(String)),
  });
});

it('lists the start of the last announced maintenance that began within a day', async () => {
  const { db, clock } = market.ports;
  const dayMs = 86_400_000;
  const addNotice = (id: string, start_at: number, state: 'done' | 'cancelled' = 'done') => {
    const period = { executor_id: node.id, start_at, start_text: '', minutes: 30, reason: null };
    const stamps = { created_at: 0, updated_at: 0 };
    const row = { id, ...period, permanent: 0 as const, state, ...stamps };
    return db.insertInto('notices').values(row).execute();
  };
  const began = clock.now() - dayMs;
  await addNotice('1', began - 1);
  await addNotice('2', clock.now() + 1);
  await addNotice('3', clock.now(), 'cancelled');
  const starts = async () => (await market.asValidator('/executors', {})).body[0].maintenance_ms;
  expect(await starts()).toBeNull();
  await addNotice('4', began);
  expect(await starts()).toBe(began);
});

it('lists any number of nodes with six queries', async () => {
  const watched = watchDatabase(market.ports.db);
  const { executorsToCheck } = createValidators({
    ...market.ports,
    addresses: null,
    db: watched.db,
    wake: () => undefined,
  });
  const listing = async () => {
    const before = watched.queries();
    const { length } = await executorsToCheck();
    return { length, queries: watched.queries() - before };
  };
  expect(await listing()).toEqual({ length: 1, queries: 6 });
  await market.verifiedNode();
  await market.verifiedNode();
  expect(await listing()).toEqual({ length: 3, queries: 6 });
});

it('accepts only validators of this market', async () => {
  const stranger = await market.asValidator('/executors', {}, testSigner(9));
  expect(stranger.status).toBe(401);
  const account = await market.signUp();
  const path = `/validator/${market.validator.hotkey}/executors`;
  const answer = await market.call('POST', path, { headers: account.key, body: {} });
  expect(answer.status).toBe(401);
});

describe('a verdict', () => {
  it('`verified` lists the node in the market with its measurements', async () => {
    await market.report(node);
    const [row] = (await market.call('GET', '/executors')).body;
    expect(row).toMatchObject({
      driver_version: '570.86.15',
      max_cuda_version: 12.8,
      validator_hotkey: market.validator.hotkey,
      uptime_in_minutes: 0,
      simulated: true,
    });
    expect(await verification()).toMatchObject({
      verified: true,
      validator_hotkey: market.validator.hotkey,
    });
  });

  it('`failed` removes the node from the market, and shows the reason and the remedy', async () => {
    await market.report(node);
    const failed = { verdict: 'failed' as const, checks: [FAILED] };
    expect((await market.report(node, failed)).body).toEqual({
      success: false,
      error: 'The GPUs cannot be used',
      details: { executor_id: node.id, verdict: 'failed' },
      reason_code: 'GPU_RUNTIME_DEVICE_FAULT',
    });
    expect(await listed()).toBe(0);
    expect((await market.rent(await market.renter(), node.id)).body.error.code).toBe(
      'node_not_verified',
    );
    expect((await verification()).blocking_reasons).toMatchObject([
      { code: 'GPU_RUNTIME_DEVICE_FAULT', fix: 'Reload the driver', required: '2 devices' },
    ]);
    // The check of a rented host does not test the GPUs, so a passed check does not return the node to the market.
    const untried = { ...FAILED, passed: true, reason_code: null, message: 'unknown' };
    await market.report(node, { checks: [untried] });
    expect(await listed()).toBe(0);
    await market.report(node, { checks: [{ ...untried, message: 'passed' }] });
    expect(await listed()).toBe(1);
  });

  it('`withheld` changes nothing', async () => {
    await market.report(node);
    const before = await verification();
    await market.clock.advance(60_000);
    await market.report(node, { verdict: 'withheld', checks: [FAILED], inventory: null });
    expect(await verification()).toEqual(before);
    expect(await listed()).toBe(1);
  });

  it('changes nothing if it is older than the recorded verdict', async () => {
    await market.clock.advance(60_000);
    await market.report(node);
    const late = { verdict: 'failed', checked_at_ms: market.clock.now() - 1 } as const;
    await market.report(node, late);
    expect(await listed()).toBe(1);
  });

  it('is ordered by the time of its check, even if the verdict is delivered late or a clock is wrong', async () => {
    const aheadMs = market.clock.now() + 60_000;
    const newer = { verdict: 'failed', checked_at_ms: aheadMs } as const;
    await market.report(node, newer);
    await market.clock.advance(50_000);
    await market.report(node, { verdict: 'verified', checked_at_ms: aheadMs - 1 });
    expect(await listed()).toBe(0);
    // After the server's clock was set back, no report counts as late.
    const later = market.clock.now() + 3_600_000;
    await market.ports.db.updateTable('executors').set({ verdict_at: later }).execute();
    await market.report(node);
    expect(await listed()).toBe(1);
  });

  it('updates last_seen_at to the time of its check, even if the verdict is delivered late', async () => {
    const seen = async () =>
      (await market.ports.db.selectFrom('executors').select('last_seen_at').execute())[0];
    const factsMs = market.clock.now();
    await market.clock.advance(3_600_000);
    await market.report(node, { checked_at_ms: factsMs });
    expect(await seen()).toEqual({ last_seen_at: factsMs });
    await market.report(node);
    await market.report(node, { checked_at_ms: factsMs });
    expect(await seen()).toEqual({ last_seen_at: market.clock.now() });
  });

  it('does not block the next verdict if the clock of the validator runs ahead', async () => {
    await market.report(node, { checked_at_ms: market.clock.now() + 1e9 });
    await market.clock.advance(1);
    await market.report(node, { verdict: 'failed' });
    expect(await listed()).toBe(0);
  });

  it('updates the free GPUs, but never the GPUs of a pod', async () => {
    await market.report(node);
    await market.ports.db.updateTable('executors').set({ min_gpu_count: 1 }).execute();
    const account = await market.renter();
    const { id } = (await market.rent(account, node.id, { gpu_count: 1 })).body;
    const before = await slots();
    expect(before.map((slot) => slot.pod_id)).toEqual([id, null]);

    const swapped = testInventory(node.id, {
      gpus: 2,
      seed: '33333333-3333-4333-8333-333333333333',
    });
    await market.report(node, { inventory: swapped });
    const after = await slots();
    expect(after[0]).toEqual(before[0]);
    expect(after.slice(1).map((slot) => slot.gpu_uuid)).toEqual(
      expect.arrayContaining(swapped.gpu.devices.map((device) => device.uuid)),
    );
  });

  it('does not end a pod when the node fails', async () => {
    await market.report(node);
    const account = await market.renter();
    await market.rent(account, node.id);
    await market.sync();
    await market.report(node, { verdict: 'failed', checks: [FAILED] });
    await market.sync();
    const [pod] = (await market.call('GET', '/pods', { headers: account.key })).body;
    expect(pod).toMatchObject({ status: 'RUNNING', executor: { active: false } });
  });
});

describe('the account of a validator', () => {
  const prove = async (account: TestAccount, signer = market.validator, ageMs = 0) => {
    const proof = await signAccountProof(signer, account.id, market.clock.now() - ageMs);
    const body = { validator_proof: proof };
    return market.call('PUT', '/users/me', { headers: account.session, body });
  };
  const check = (headers: Record<string, string>, change: object = {}, of = market.validator) =>
    market.call('POST', `/validator/${of.hotkey}/executor-health-check`, {
      headers,
      body: { ...market.healthCheck(node), ...change },
    });

  it('can request checks with its session, but cannot send reports', async () => {
    const account = await market.signUp();
    expect(await check(account.session)).toMatchObject({
      status: 403,
      body: { error: { message: 'The account has no validator_hotkey' } },
    });
    expect((await prove(account)).body.validator_hotkey).toBe(market.validator.hotkey);
    expect(await check(account.session)).toMatchObject({
      status: 200,
      body: { reason_code: 'VALIDATOR_UNREACHABLE' },
    });
    const report = { verdict: 'verified', checked_at_ms: 1, checks: [], inventory: null };
    expect((await check(account.session, { report })).status).toBe(403);
    expect(await verification()).toMatchObject({ verified: false });
    // Rejected are an API key, another validator, and the other routes of validators.
    expect((await check(account.key)).status).toBe(401);
    expect((await check({ authorization: `Bearer ${account.apiKey}` })).status).toBe(403);
    expect((await check(account.session, {}, testSigner(9))).status).toBe(403);
    const path = `/validator/${market.validator.hotkey}/executors`;
    const listed = await market.call('POST', path, { headers: account.session, body: {} });
    expect(listed.status).toBe(401);
  });

  it('requires a recent proof by the hotkey for this account; a hotkey is linked to one account', async () => {
    const [first, second] = [await market.signUp(), await market.signUp()];
    expect((await prove(first, testSigner(9))).status).toBe(403);
    expect((await prove(first, market.validator, 301_000)).status).toBe(403);
    const foreign = await signAccountProof(market.validator, second.id, market.clock.now());
    const body = { validator_proof: foreign };
    const taken = await market.call('PUT', '/users/me', { headers: first.session, body });
    expect(taken.body.error.code).toBe('forbidden');
    const hotkeyOf = async ({ key: headers }: TestAccount) =>
      (await market.call('GET', '/users/me', { headers })).body.validator_hotkey;
    expect(await hotkeyOf(first)).toBeNull();
    await prove(first);
    await prove(second);
    const { hotkey } = market.validator;
    expect([await hotkeyOf(first), await hotkeyOf(second)]).toEqual([null, hotkey]);
    const none = { headers: second.session, body: { validator_proof: null } };
    expect((await market.call('PUT', '/users/me', none)).body.validator_hotkey).toBeNull();
    await prove(second);
    await market.call('DELETE', '/users/me', { headers: second.session });
    expect(await market.ports.db.selectFrom('validator_accounts').selectAll().execute()).toEqual(
      [],
    );
  });
});

describe('a health check', () => {
  it('finds the node also by its address', async () => {
    const report = { verdict: 'verified', checked_at_ms: 1, checks: [], inventory: null };
    const request = { ...market.healthCheck(node), executor_id: null, report };
    expect((await market.asValidator('/executor-health-check', request)).body.success).toBe(true);
    const nowhere = { ...request, miner_port: 1 };
    const { body } = await market.asValidator('/executor-health-check', nowhere);
    expect(body.error.code).toBe('node_not_found');
  });

  it('runs the check at once if the request contains no report', async () => {
    const silent = await market.asValidator('/executor-health-check', market.healthCheck(node));
    expect(silent).toMatchObject({
      status: 200,
      body: { success: false, reason_code: 'VALIDATOR_UNREACHABLE', details: null },
    });
    expect(await verification()).toMatchObject({ verified: false, checks: [] });
    market.agents.host(node.id).report = {
      verdict: 'verified',
      checked_at_ms: market.clock.now(),
      checks: [],
      inventory: testInventory(node.id),
    };
    const options = { rental_in_progress: true, gpu_uuids: ['GPU-1'], cpu_count: 3 };
    const request = { ...market.healthCheck(node), ...options };
    const { body } = await market.asValidator('/executor-health-check', request);
    expect(body).toMatchObject({ success: true, error: null, reason_code: null });
    expect([market.agents.wishes.at(-1), await listed()]).toEqual([options, 1]);
  });

  it('is accepted only from the validator named in the path', async () => {
    const path = `/validator/${testSigner(9).hotkey}/executor-health-check`;
    const timestamp = String(Math.floor(market.clock.now() / 1_000));
    const { validator } = market;
    const signature = toHex(validator.sign(new TextEncoder().encode(timestamp)));
    const headers = { hotkey: validator.hotkey, timestamp, signature };
    const body = market.healthCheck(node);
    expect((await market.call('POST', path, { headers, body })).status).toBe(403);
    const forged = { ...headers, hotkey: testSigner(9).hotkey };
    expect((await market.call('POST', path, { headers: forged, body })).status).toBe(401);
  });
});
