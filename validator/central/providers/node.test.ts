import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  createTestMarket,
  type TestMarket,
  testSigner,
} from '../../../test/fakes/scenes/market-fixture.ts';
import { testInventory } from '../../../test/fixtures/host-inventory.ts';

const H100 = 'NVIDIA H100 80GB HBM3';
const DOCS = 'https://docs.example';

let market: TestMarket;
let token: string;
beforeAll(async () => {
  market = await createTestMarket({ docsUrl: DOCS });
  token = await market.logIn();
});
afterAll(() => market.close());

const get = async (path: string) => (await market.portal('GET', path, { token })).body.data;
const nodeOf = (id: string) => get(`/executors/${id}`);
const change = (id: string, what: string, body: object, method: 'POST' | 'DELETE' = 'POST') =>
  market.portal(method, `/executors/${id}/${what}`, { token, body });
const clearMinimum = (id: string) =>
  market.portal('DELETE', `/executors/${id}/min-gpu-count-for-rental`, { token });
const setMinimum = (id: string, min_gpu_count_for_rental: unknown) =>
  change(id, 'min-gpu-count-for-rental', { min_gpu_count_for_rental });
const priceOnMarket = async (id: string) =>
  (await market.call('GET', '/executors')).body.find((node: { id: string }) => node.id === id)
    ?.price_per_gpu;

describe('the price', () => {
  it('can be changed within its band, for new rentals only', async () => {
    const { id } = await market.verifiedNode({ gpus: 2, minimum: 1 });
    const renter = await market.renter();
    const before = (await market.rent(renter, id, { gpu_count: 1 })).body;
    const { status, body } = await change(id, 'update-price', { price_per_gpu: 3.3 });
    expect([status, body.data.price_per_gpu]).toEqual([200, 3.3]);
    expect(await priceOnMarket(id)).toBe(3.3);
    const after = (await market.rent(renter, id, { gpu_count: 1 })).body;
    expect([before.price, after.price]).toEqual([2.2, 3.3]);
    const pod = await market.call('GET', `/pods/${before.id}`, { headers: renter.key });
    expect(pod.body.price).toBe(2.2);
  });

  it.each([
    [1.1, 200],
    [1.099_999, 400],
    [8.8, 200],
    [8.800_001, 400],
    [1e308, 400],
    [-1, 422],
    ['2', 422],
    [null, 422],
    [undefined, 422],
  ])(
    'is accepted or rejected depending on its value: %s returns %d',
    async (price_per_gpu, status) => {
      const { id } = await market.addNode();
      expect((await change(id, 'update-price', { price_per_gpu })).status).toBe(status);
    },
  );
});

describe('a node', () => {
  it('cannot be rented after its GPU type or count changed until the validator has verified the change', async () => {
    const node = await market.verifiedNode({ gpus: 2 });
    const late = market.clock.now();
    await market.clock.advance(1_000);
    const { status, body } = await change(node.id, 'update-gpu', { gpu_count: 4 });
    expect([status, body.data]).toMatchObject([
      200,
      { gpu_count: 4, status: 'queued', available_gpu_count: 0, rented: false },
    ]);
    expect(await priceOnMarket(node.id)).toBeUndefined();
    // Reports a check that started before the change, and a check by a validator that has not received the change.
    await market.report(node, { checked_at_ms: late }, { gpus: 4 });
    await market.report(node, {}, { gpus: 2 });
    expect((await nodeOf(node.id)).status).toBe('queued');
    await market.clock.advance(1_000);
    await market.report(node, {}, { gpus: 4 });
    expect(await nodeOf(node.id)).toMatchObject({ status: 'available', available_gpu_count: 4 });
    // After this report the number of GPUs follows the measurements.
    await market.clock.advance(1_000);
    await market.report(node, {}, { gpus: 3 });
    expect(await nodeOf(node.id)).toMatchObject({ status: 'available', available_gpu_count: 3 });
    const listed = await market.asValidator('/executors', {});
    const row = listed.body.find((each: { id: string }) => each.id === node.id);
    expect(row).toMatchObject({ gpu_type: H100, gpu_count: 4 });
  });

  it('cannot have fewer GPUs than its pods use, or than the minimum of a rental', async () => {
    const node = await market.verifiedNode({ gpus: 4, minimum: 2 });
    const renter = await market.renter();
    const pod = (await market.rent(renter, node.id, { gpu_count: 3 })).body;
    const below = await change(node.id, 'update-gpu', { gpu_count: 2 });
    expect([below.status, below.body.message]).toEqual([400, 'Pods hold 3 GPUs of this node']);
    const { body } = await change(node.id, 'update-gpu', { gpu_count: 3 });
    expect(body.data).toMatchObject({ gpu_count: 3, available_gpu_count: 0, rented: true });
    await market.call('DELETE', `/pods/${pod.id}`, { headers: renter.key });
    await market.sync();
    expect((await change(node.id, 'update-gpu', { gpu_count: 1 })).status).toBe(400);
    await clearMinimum(node.id);
    expect((await change(node.id, 'update-gpu', { gpu_count: 1 })).status).toBe(200);
  });

  it('requires a known type; a price above the band of the new type is set to the reference price', async () => {
    const { id } = await market.addNode();
    const unknown = await change(id, 'update-gpu', { gpu_type: 'Voodoo 2' });
    expect([unknown.status, unknown.body.message]).toEqual([
      400,
      expect.stringContaining('NVIDIA H200'),
    ]);
    const cheaper = await change(id, 'update-gpu', { gpu_type: 'NVIDIA GeForce RTX 3060' });
    expect(cheaper.body.data).toMatchObject({ gpu_count: 2, price_per_gpu: 0.1 });
    const near = await change(id, 'update-gpu', { gpu_type: 'NVIDIA GeForce RTX 3070' });
    expect(near.body.data.price_per_gpu).toBe(0.1);
  });

  it.each([{ gpu_count: 0 }, { gpu_count: 65 }, { gpu_count: 1.5 }, { gpu_type: '' }])(
    'rejects the body %j',
    async (body) => {
      const { id } = await market.addNode();
      expect((await change(id, 'update-gpu', body)).status).toBe(422);
      const nothing = await change(id, 'update-gpu', {});
      expect([nothing.status, nothing.body.data.status]).toEqual([200, 'queued']);
    },
  );
});

describe('the minimum number of GPUs of a rental', () => {
  it('allows rentals of a part, and cannot be cleared while a part is rented', async () => {
    const { id } = await market.verifiedNode({ gpus: 4 });
    const renter = await market.renter();
    const part = () => market.rent(renter, id, { gpu_count: 2 });
    expect((await part()).body.error.code).toBe('gpu_count_invalid');
    expect((await setMinimum(id, 2)).body.data.min_gpu_count_for_rental).toBe(2);
    expect((await market.rent(renter, id, { gpu_count: 1 })).status).toBe(400);
    const pod = await part();
    expect(pod.status).toBe(200);
    const kept = await clearMinimum(id);
    expect([kept.status, kept.body.error.code]).toEqual([400, 'bad_request']);
    // A new minimum does not affect existing pods.
    expect((await setMinimum(id, 1)).status).toBe(200);
    await market.call('DELETE', `/pods/${pod.body.id}`, { headers: renter.key });
    await market.sync();
    expect((await clearMinimum(id)).body.data.min_gpu_count_for_rental).toBeNull();
    expect((await part()).body.error.code).toBe('gpu_count_invalid');
  });

  it('can be cleared while one pod rents the whole node', async () => {
    const { id } = await market.verifiedNode({ gpus: 2, minimum: 1 });
    await market.rent(await market.renter(), id);
    expect((await clearMinimum(id)).status).toBe(200);
  });

  it('is rejected for a node without disk quotas, and for a node that has never been measured', async () => {
    const node = await market.addNode({ gpus: 2 });
    const early = await setMinimum(node.id, 1);
    expect([early.status, early.body.error.code]).toEqual([400, 'gpu_split_not_allowed']);
    const inventory = testInventory(node.id, { gpus: 2 });
    const isolation = { ...inventory.isolation, disk_quota: 'none' as const };
    await market.report(node, { inventory: { ...inventory, isolation } });
    const refused = await setMinimum(node.id, 1);
    expect([refused.status, refused.body.error.code]).toEqual([400, 'gpu_split_not_allowed']);
    // A minimum that equals the number of GPUs does not split the node.
    expect((await setMinimum(node.id, 2)).status).toBe(200);
  });

  it.each([
    [0, 422],
    [65, 422],
    ['1', 422],
    [3, 400],
    [2, 200],
  ])('is checked against two GPUs: %s returns %d', async (minimum, status) => {
    const { id } = await market.verifiedNode({ gpus: 2 });
    expect((await setMinimum(id, minimum)).status).toBe(status);
  });
});

it('lists the pods on a node with pseudonyms of their renters', async () => {
  const { id } = await market.verifiedNode({ gpus: 4, minimum: 1 });
  const [one, other] = [await market.renter(), await market.renter()];
  for (const renter of [one, one, other]) {
    await market.rent(renter, id, { gpu_count: 1, termination_hours: 2 });
  }
  const { body } = await market.portal('GET', `/executors/${id}/pods?limit=2`, { token });
  expect(body).toMatchObject({ total: 3, page: 1, limit: 2, pagination: { total_pages: 2 } });
  expect(Object.keys(body.data[0]).toSorted()).toEqual([
    'created_at',
    'gpu_count',
    'pod_id',
    'pod_name',
    'price',
    'removal_scheduled_at',
    'renter_ref',
    'status',
  ]);
  expect(body.data[0]).toMatchObject({ gpu_count: 1, price: 2.2, status: 'PENDING' });
  const all = await get(`/executors/${id}/pods`);
  const references = all.map((pod: { renter_ref: string }) => pod.renter_ref);
  expect(new Set(references).size).toBe(2);
  for (const secret of [one.id, other.id, one.email]) {
    expect(JSON.stringify(all)).not.toContain(secret);
  }
});

it('returns the reasons why a node is not on the market, with their remedies', async () => {
  const node = await market.addNode();
  const check = {
    check_id: 'clock',
    passed: false,
    reason_code: 'CLOCK_SKEW',
    measured: '61 s',
    required: 'clock within 30 s of the validator',
    message: 'The clock is wrong',
    remediation: 'Enable time synchronisation (systemd-timesyncd or chrony).',
    mode: 'enforce' as const,
    severity: 'error' as const,
    category: 'env' as const,
    fatal: false,
  };
  const shadow = { ...check, check_id: 'power_limit', mode: 'shadow' as const };
  const strange = { ...check, check_id: 'new_check', reason_code: 'constructor' };
  await market.report(node, { verdict: 'failed', checks: [check, shadow, strange] });
  const verification = await get(`/executors/${node.id}/verification`);
  expect(verification).toMatchObject({
    verified: false,
    checked_at: expect.any(String),
    validator_hotkey: market.validator.hotkey,
    checks: [
      {
        name: 'clock',
        passed: false,
        gating: true,
        fix: 'Enable time synchronisation (systemd-timesyncd or chrony).',
        fix_command: 'timedatectl set-ntp true',
      },
      { name: 'power_limit', gating: false },
      { name: 'new_check', fix_command: null },
    ],
  });
  expect(verification.blocking_reasons).toEqual([
    {
      code: 'CLOCK_SKEW',
      gating: true,
      message: 'The clock is wrong',
      measured: '61 s',
      required: 'clock within 30 s of the validator',
      fix: 'Enable time synchronisation (systemd-timesyncd or chrony).',
      fix_command: 'timedatectl set-ntp true',
      verify_command: 'timedatectl status',
      requires: 'root on the host',
      docs_url: `${DOCS}#checks`,
      kind: 'clock',
    },
    expect.objectContaining({
      code: 'constructor',
      fix_command: null,
      verify_command: 'npm run agent -- doctor',
    }),
  ]);
  const row = await nodeOf(node.id);
  expect([row.status, row.blocking_reasons.length]).toEqual(['failed', 2]);
  const stranger = await market.logIn(testSigner(9));
  const listed = await market.portal('GET', '/executors?scope=all&limit=1000', { token: stranger });
  for (const each of listed.body.data) expect(each.blocking_reasons).toEqual([]);
});

it('validates the owner and page parameters of the node list', async () => {
  const statuses: Record<string, number> = {};
  for (const query of [
    ...['page=0', 'limit=0', 'limit=1001', 'page=1e3', 'page=9007199254740991', 'scope=everybody'],
    ...['miner_hotkey=me', 'limit=1000', 'page=1000000', 'scope=own'],
  ]) {
    statuses[query] = (await market.portal('GET', `/executors?${query}`, { token })).status;
  }
  const good = Object.entries(statuses).filter(([, status]) => status === 200);
  expect(good.map(([query]) => query)).toEqual(['limit=1000', 'page=1000000', 'scope=own']);
  expect(new Set(Object.values(statuses))).toEqual(new Set([422, 200]));
  const unknown = testSigner(77).hotkey;
  const none = await market.portal('GET', `/executors?miner_hotkey=${unknown}`, { token });
  expect(none.body).toMatchObject({ data: [], total: 0 });
});

describe('the reward estimate', () => {
  const estimate = (query: string) => market.portal('GET', `/machines/estimated-rewards?${query}`);

  it('is computed from price, fee, utilization and the weights of the validator', async () => {
    market.agents.rewards.shares = { rented: 0.5, idle: 0.1, obstacles: [] };
    const { status, body } = await estimate('gpu_type=RTX%204090&gpu_count=8&gpu_price=0.333333');
    const utilization = body.data.expected_utilization;
    expect([status, body.data]).toEqual([
      200,
      {
        rewards_on_subnet: expect.closeTo(0.5 * utilization + 0.1 * (1 - utilization), 12),
        rewards_while_rented: 0.5,
        rewards_while_idle: 0.1,
        reward_obstacles: [],
        rental_income_per_hour: 2.666664,
        platform_fee_per_hour: 0.133334,
        expected_utilization: expect.any(Number),
        gpu_type: 'NVIDIA GeForce RTX 4090',
        gpu_count: 8,
        gpu_price: 0.333333,
      },
    ]);
    expect(utilization).toBeGreaterThan(0);
    expect(utilization).toBeLessThan(1);
    expect(market.agents.questions.at(-1)).toEqual({
      gpu_model: 'NVIDIA GeForce RTX 4090',
      gpu_count: 8,
      price_uusd: 333_333,
      fee_uusd: 106_668,
    });
    const count = market.agents.questions.length;
    await estimate('gpu_type=RTX%204090&gpu_count=8&gpu_price=0.333333');
    expect(market.agents.questions).toHaveLength(count);
    expect((await estimate('gpu_type=H200&gpu_count=1')).body.data.gpu_price).toBe(2.8);
  });

  it.each([
    ['gpu_count=1', 422],
    ['gpu_type=H100', 422],
    ['gpu_type=H100&gpu_count=0', 422],
    ['gpu_type=H100&gpu_count=65', 422],
    ['gpu_type=H100&gpu_count=1&gpu_price=-1', 422],
    ['gpu_type=H100&gpu_count=1&gpu_price=x', 422],
    ['gpu_type=H100&gpu_count=1&gpu_price=100', 400],
    ['gpu_type=Voodoo&gpu_count=1', 400],
  ])('validates the query: %s returns %d', async (query, status) => {
    expect((await estimate(query)).status).toBe(status);
  });

  it('returns 502 while the validator does not respond', async () => {
    market.agents.rewards.shares = null;
    const { status, body } = await estimate('gpu_type=B200&gpu_count=1');
    expect([status, body.error.code]).toEqual([502, 'upstream_unavailable']);
  });

  it('requires no credential, like the machine catalogue', async () => {
    const { body } = await market.portal('GET', '/machines');
    expect(body.data.length).toBe(body.total);
    expect(body.data).toContainEqual(expect.objectContaining({ name: H100, price: 2.2 }));
    const page = await market.portal('GET', '/machines?limit=5&page=2');
    expect([page.body.data.length, page.body.page]).toEqual([5, 2]);
  });
});
