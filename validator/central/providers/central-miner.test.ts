import { createServer, type IncomingMessage, type Server } from 'node:http';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createTestMarket, type TestMarket } from '../../../test/fakes/scenes/market-fixture.ts';
import { createHttpCentralMiner } from '../platform/adapters/http-central-miner.ts';

const H100 = 'NVIDIA H100 80GB HBM3';
const TOKEN = 'miner secret';

type MinerNode = Record<string, unknown>;

let server: Server;
/** List that the server returns, and the last list that it received. */
let list: unknown;
let received: MinerNode[];
let status: number;
let market: TestMarket;
let token: string;

beforeEach(async () => {
  [list, received, status] = [{ executors: [] }, [], 200];
  server = createServer(async (request, response) => {
    const path = `/base/miners/${market.provider.hotkey}/executors`;
    const isExpected = request.url === path && request.headers.authorization === `Bearer ${TOKEN}`;
    if (request.method === 'PUT') received = JSON.parse(await bodyOf(request)).executors;
    const counts = { added: received.length, updated: 0, removed: 1 };
    const answer = request.method === 'PUT' ? counts : list;
    response.writeHead(isExpected ? status : 404, { 'content-type': 'application/json' });
    response.end(typeof answer === 'string' ? answer : JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const baseUrl = `http://127.0.0.1:${address.port}/base/`;
  const centralMiner = createHttpCentralMiner({ baseUrl, token: TOKEN }, systemClock);
  market = await createTestMarket({ centralMiner });
  token = await market.logIn();
});
afterEach(async () => {
  await market.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

const wireNode = (port: number, change: MinerNode = {}) => ({
  ip_address: '127.0.0.1',
  port,
  gpu_type: H100,
  gpu_count: 2,
  price_per_gpu: 2.2,
  ...change,
});
const sync = (name: string) => market.portal('POST', `/executors/${name}`, { token, body: {} });
const pull = () => sync('sync-executor-central-miner');
const push = () => sync('sync-executor-miner-portal');
const nodes = async () =>
  (await market.portal('GET', '/executors?limit=1000', { token })).body.data;

it('adds, changes and removes nodes according to the list of the server', async () => {
  const [same, changed, gone, rented] = [
    await market.verifiedNode(),
    await market.verifiedNode(),
    await market.verifiedNode(),
    await market.verifiedNode(),
  ];
  await market.rent(await market.renter(), rented.id);
  const executors = [
    wireNode(same.port),
    wireNode(changed.port, { gpu_count: 4, price_per_gpu: 3 }),
    wireNode(9_000, { ip_address: '::ffff:10.0.0.9', price_per_gpu: null }),
  ];
  list = { executors };
  const { status: code, body } = await pull();
  expect([code, body.data]).toEqual([200, { added: 1, updated: 1, removed: 1, kept: 1 }]);
  const present = await nodes();
  const byId = new Map(present.map((node: { id: string }) => [node.id, node]));
  expect(byId.get(same.id)).toMatchObject({ status: 'available', price_per_gpu: 2.2 });
  expect(byId.get(changed.id)).toMatchObject({ gpu_count: 4, price_per_gpu: 3, status: 'queued' });
  expect(byId.has(gone.id)).toBe(false);
  expect(byId.get(rented.id)).toMatchObject({ rented: true });
  expect(present).toContainEqual(
    expect.objectContaining({ executor_ip_address: '10.0.0.9', price_per_gpu: 2.2 }),
  );
  const again = await sync('sync-executor-central-provider');
  expect(again.body.data).toEqual({ added: 0, updated: 0, removed: 0, kept: 1 });
});

it.each([
  ['an unknown type', { gpu_type: 'Voodoo 2' }, 400],
  ['a price outside the band', { price_per_gpu: 100 }, 400],
  ['a link-local address', { ip_address: '169.254.169.254' }, 400],
  ['a malformed port', { port: 'x' }, 502],
])('changes no node if one listed node has %s', async (_, change, expected) => {
  const node = await market.verifiedNode();
  list = { executors: [wireNode(9_001), wireNode(9_002, change)] };
  const { status: code } = await pull();
  expect(code).toBe(expected);
  expect((await nodes()).map(({ id }: { id: string }) => id)).toEqual([node.id]);
});

it.each([
  ['an error', () => ([list, status] = [{}, 500])],
  ['an authorization error', () => ([list, status] = [{}, 401])],
  ['a body that is not JSON', () => ([list, status] = ['<html>', 200])],
  ['a body above the limit', () => ([list, status] = ['x'.repeat(1024 * 1024 + 1), 200])],
  ['a redirect', () => ([list, status] = [{}, 302])],
])(
  'changes no node after %s, and does not reveal the address of the server',
  async (_, arrange) => {
    const node = await market.verifiedNode();
    arrange();
    const { status: code, body } = await pull();
    expect([code, body.error.code]).toEqual([502, 'upstream_unavailable']);
    expect(JSON.stringify(body)).not.toMatch(/127\.0\.0\.1|secret/);
    expect((await nodes()).map(({ id }: { id: string }) => id)).toEqual([node.id]);
  },
);

it("sends the provider's nodes to the server, and returns the address of the server", async () => {
  const node = await market.verifiedNode({ price: 3.1 });
  const { body } = await push();
  expect(body.data).toEqual({ added: 1, updated: 0, removed: 1, kept: 0 });
  expect(received).toEqual([wireNode(node.port, { price_per_gpu: 3.1 })]);
  const optIn = await market.portal('POST', '/providers/opt-in', {
    token,
    body: { opt_in_status: true },
  });
  expect(optIn.body.data).toMatchObject({
    central_miner_ip: '127.0.0.1',
    central_miner_port: expect.any(Number),
  });
});

it('rejects a list with too many nodes that have never passed the checks', async () => {
  list = { executors: Array.from({ length: 21 }, (_, index) => wireNode(9_000 + index)) };
  const { status: code, body } = await pull();
  expect([code, body.message]).toEqual([400, expect.stringContaining('at most 20 nodes')]);
  expect(await nodes()).toEqual([]);
  list = { executors: Array.from({ length: 20 }, (_, index) => wireNode(9_000 + index)) };
  expect((await pull()).body.data).toMatchObject({ added: 20 });
});

it('changes no node if no server is configured', async () => {
  const alone = await createTestMarket();
  const by = await alone.logIn();
  for (const name of ['central-miner', 'central-provider', 'miner-portal']) {
    const path = `/executors/sync-executor-${name}`;
    const { status: code, body } = await alone.portal('POST', path, { token: by, body: {} });
    const nothing = { added: 0, updated: 0, removed: 0, kept: 0 };
    expect([code, body.data]).toEqual([200, nothing]);
  }
  await alone.close();
});
