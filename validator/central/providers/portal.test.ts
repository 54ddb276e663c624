import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { toHex } from '#shared/signing/sr25519.ts';
import {
  createTestMarket,
  type TestMarket,
  testSigner,
} from '../../../test/fakes/scenes/market-fixture.ts';
import { MACHINE_CATALOGUE } from '../market/executors/machine-catalogue.ts';

let market: TestMarket;

beforeEach(async () => {
  market = await createTestMarket();
});
afterEach(() => market.close());

const H100 = 'NVIDIA H100 80GB HBM3';

describe('the log-in with a hotkey', () => {
  type Change = { ageSeconds?: number; text?: string; hex?: (signature: string) => string };

  function logIn(
    { ageSeconds = 0, text, hex = (same) => same }: Change = {},
    by = market.provider,
  ) {
    const message = String(Math.floor(market.clock.now() / 1_000) - ageSeconds);
    const signed = new TextEncoder().encode(text ?? message);
    const signature = hex(toHex(by.sign(signed)));
    const body = { miner_hotkey: market.provider.hotkey, message, signature };
    return market.portal('POST', '/auth/login-flexible', { body });
  }

  it('returns a token, and returns the same provider for each log-in', async () => {
    const first = await logIn();
    expect(first.body).toMatchObject({
      success: true,
      data: { miner: { miner_hotkey: market.provider.hotkey }, token: expect.any(String) },
      timestamp: expect.stringMatching(/\.\d{6}$/),
    });
    const second = await logIn({ ageSeconds: 1 });
    expect(second.body.data.miner.id).toBe(first.body.data.miner.id);
    const { token } = second.body.data;
    expect((await market.portal('GET', '/auth/me', { token })).body).toEqual({
      provider_id: first.body.data.miner.id,
      miner_id: first.body.data.miner.id,
      id: first.body.data.miner.id,
      miner_hotkey: market.provider.hotkey,
      miner_coldkey: null,
      email: null,
      discord_id: null,
      discord_connected: false,
      extra_incentive_eligible: false,
      machine_request_subscription: [],
      opt_in_status: true,
    });
  });

  it('accepts a message signed by a browser wallet, and hex without 0x', async () => {
    const message = String(Math.floor(market.clock.now() / 1_000));
    expect((await logIn({ text: `<Bytes>${message}</Bytes>` })).status).toBe(200);
    const bare = { ageSeconds: 1, hex: (signature: string) => signature.slice(2).toUpperCase() };
    expect((await logIn(bare)).status).toBe(200);
    expect((await logIn({ ageSeconds: 300 })).status).toBe(200);
  });

  it('rejects a signature by another key, a signature over other text, a time that is too old or in the future, and a second use', async () => {
    expect((await logIn({}, testSigner(9))).status).toBe(401);
    expect((await logIn({ text: 'something else' })).status).toBe(401);
    const server = Math.floor(market.clock.now() / 1_000);
    for (const ageSeconds of [301, -301]) {
      const { status, body } = await logIn({ ageSeconds });
      expect([status, body.error.message]).toEqual([
        401,
        `The signed time is more than 300 seconds from the server's, which is ${server}`,
      ]);
    }
    expect((await logIn({ hex: () => 'zz' })).status).toBe(401);
    expect((await logIn()).status).toBe(200);
    const second = await logIn();
    expect([second.status, second.body.message]).toEqual([
      401,
      'A log-in with this time was already used',
    ]);
  });

  it('returns a token that is invalid after the log-out', async () => {
    const token = await market.logIn();
    expect((await market.portal('POST', '/auth/logout', { token })).body).toMatchObject({
      data: {},
    });
    expect((await market.portal('GET', '/auth/me', { token })).status).toBe(401);
  });

  it("the portal does not accept a renter's token, and the API for renters does not accept a portal token", async () => {
    const { token } = await market.signUp();
    expect((await market.portal('GET', '/executors', { token })).status).toBe(401);
    const portalToken = await market.logIn();
    const headers = { authorization: `Bearer ${portalToken}` };
    expect((await market.call('GET', '/users/me', { headers })).status).toBe(401);
  });
});

describe('a node', () => {
  let token: string;
  beforeEach(async () => {
    token = await market.logIn();
  });

  function add(change: Record<string, unknown> = {}) {
    const body = { gpu_type: H100, ip_address: '10.1.2.3', ...change };
    return market.portal('POST', '/executors', { token, body });
  }

  it('is added with the defaults in state `queued`', async () => {
    const { status, body } = await add();
    expect(status).toBe(200);
    expect(body.data).toMatchObject({
      gpu_type: H100,
      gpu_count: 1,
      executor_ip_address: '10.1.2.3',
      executor_ip_port: '8080',
      price_per_gpu: 2.2,
      status: 'queued',
      rented: false,
      blocking_reasons: [],
    });
  });

  it.each([
    ['the lower end of the band', 1.1, 200],
    ['below the band', 1.09, 400],
    ['the upper end of the band', 8.8, 200],
    ['above the band', 8.81, 400],
    ['a null', null, 200],
    ['a negative price', -1, 422],
  ])('is accepted or rejected depending on its price: %s', async (_, price_per_gpu, status) => {
    expect((await add({ price_per_gpu })).status).toBe(status);
  });

  it('must have a known type', async () => {
    const { status, body } = await add({ gpu_type: 'Voodoo 2' });
    expect(status).toBe(400);
    for (const { name } of MACHINE_CATALOGUE) expect(body.message).toContain(name);
  });

  it.each([
    '0.0.0.0',
    '169.254.169.254',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    'fe80::1',
    'ff02::1',
    '::ffff:169.254.169.254',
    'example.com',
    '10.0.0.256',
  ])('cannot have the address %s', async (ip_address) => {
    expect((await add({ ip_address })).status).toBe(400);
  });

  it.each([
    ['no address', { ip_address: undefined }],
    ['port 0', { port: 0 }],
    ['port 65536', { port: 65_536 }],
    ['no GPUs', { gpu_count: 0 }],
    ['65 GPUs', { gpu_count: 65 }],
  ])('is rejected if it has %s', async (_, change) => {
    expect((await add(change)).status).toBe(422);
  });

  it.each([
    ['::ffff:10.1.2.3', '10.1.2.3'],
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
  ])('has a canonical address if it is written as %s', async (written, kept) => {
    const { body } = await add({ ip_address: written });
    expect(body.data.executor_ip_address).toBe(kept);
    expect((await add({ ip_address: kept })).status).toBe(409);
  });

  it.each([1e308, Number.MAX_SAFE_INTEGER, 0])(
    'cannot have the price %d',
    async (price_per_gpu) => {
      const { status, body } = await add({ price_per_gpu });
      expect([status, body.error.code]).toEqual([400, 'bad_request']);
    },
  );

  it.each([{ gpu_type: 'H100\u0000' }, { ip_address: '10.1.2.3\u0000' }])(
    'is rejected with the name of the field in the error: %j',
    async (change) => {
      const { status, body } = await add(change);
      const [name] = Object.keys(change);
      expect([status, body.validation_errors[0].field]).toEqual([422, `body.${name}`]);
    },
  );

  it('can be added with `ip` instead of `ip_address`', async () => {
    const { body } = await add({ ip_address: undefined, ip: '10.9.9.9' });
    expect(body.data.executor_ip_address).toBe('10.9.9.9');
  });

  it('excludes another node at its address until it is removed', async () => {
    const { id } = (await add()).body.data;
    const again = await add();
    expect(again.status).toBe(409);
    expect(again.body.error.code).toBe('conflict');
    expect((await add({ port: 8_081 })).status).toBe(200);
    const removed = await market.portal('DELETE', `/executors/${id}`, { token });
    expect(removed.body.data.status).toBe('removed');
    expect((await add()).status).toBe(200);
    expect((await market.portal('GET', `/executors/${id}`, { token })).status).toBe(404);
    expect((await market.portal('DELETE', `/executors/${id}`, { token })).status).toBe(404);
  });

  it('is replaced if another provider adds its address, once it has not passed the checks for an hour', async () => {
    const first = (await add()).body.data;
    const passed = await market.verifiedNode();
    const owner = await market.logIn(testSigner(9));
    const claim = (change: object = {}) => {
      const body = { gpu_type: H100, ip_address: '10.1.2.3', ...change };
      return market.portal('POST', '/executors', { token: owner, body });
    };
    expect((await claim()).body.error.code).toBe('conflict');
    await market.clock.advance(3_600_000);
    expect((await add()).status).toBe(409);
    expect((await claim({ ip_address: '127.0.0.1', port: passed.port })).status).toBe(409);
    expect((await claim()).status).toBe(200);
    const { status } = await market.portal('GET', `/executors/${first.id}`, { token });
    expect(status).toBe(404);
  });

  it('is rejected if the provider already has twenty nodes that have never passed the checks, also for concurrent requests', async () => {
    const ports = Array.from({ length: 22 }, (_, index) => 9_000 + index);
    const statuses = await Promise.all(ports.map(async (port) => (await add({ port })).status));
    expect(statuses.filter((status) => status === 200)).toHaveLength(20);
    expect((await add({ port: 9_100 })).body.error.code).toBe('bad_request');
    const { body } = await market.portal('GET', '/executors?limit=1', { token });
    await market.portal('DELETE', `/executors/${body.data[0].id}`, { token });
    expect((await add({ port: 9_100 })).status).toBe(200);
  });

  it('cannot be removed while it has a pod', async () => {
    const node = await market.verifiedNode();
    const account = await market.renter();
    const { id } = (await market.rent(account, node.id)).body;
    const path = `/executors/${node.id}`;
    expect((await market.portal('GET', path, { token })).body.data.rented).toBe(true);
    expect((await market.portal('DELETE', path, { token })).status).toBe(400);
    await market.call('DELETE', `/pods/${id}`, { headers: account.key });
    await market.sync();
    expect((await market.portal('DELETE', path, { token })).status).toBe(200);
    expect((await market.rent(account, node.id)).body.error.code).toBe('node_not_found');
  });

  it('is listed for its provider, and is listed without its port for other providers', async () => {
    await add();
    await add({ port: 8_081 });
    const other = await market.logIn(testSigner(9));
    const own = await market.portal('GET', '/executors?limit=1&page=2', { token });
    expect(own.body).toMatchObject({
      total: 2,
      page: 2,
      limit: 1,
      pagination: { page: 2, limit: 1, total: 2, total_pages: 2 },
    });
    expect(own.body.data).toHaveLength(1);
    const empty = await market.portal('GET', '/executors', { token: other });
    expect(empty.body).toMatchObject({ data: [], total: 0 });
    for (const query of ['scope=all', `miner_hotkey=${market.provider.hotkey}`]) {
      const { body } = await market.portal('GET', `/executors?${query}`, { token: other });
      expect(body.data).toMatchObject([{ executor_ip_port: '' }, { executor_ip_port: '' }]);
    }
    const { id } = own.body.data[0];
    for (const method of ['GET', 'DELETE'] as const) {
      const { status } = await market.portal(method, `/executors/${id}`, { token: other });
      expect(status).toBe(403);
    }
  });
});

it.each(['/v1/shared-config', '/api/v1/shared-config', '/portal/v1/shared-config'])(
  'returns the prices without a credential at %s',
  async (url) => {
    const response = await market.server.inject({ url });
    expect(response.json()).toMatchObject({
      machine_prices: { [H100]: 2.2 },
      machine_min_price_rate: 0.5,
      machine_max_price_rate: 4,
      platform_fee_rate: 0.05,
    });
  },
);
