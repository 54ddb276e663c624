/** The relay to a validator that is down, slow, or returns malformed responses. */
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { createFakeAgents } from '../../../test/fakes/agents/fake-agents.ts';
import { eventually } from '../../../test/fakes/eventually.ts';
import {
  createTestMarket,
  type TestMarket,
  testSigner,
} from '../../../test/fakes/scenes/market-fixture.ts';
import { createGatewayAgents } from '../platform/adapters/gateway-agents.ts';

const MIB = 1024 * 1024;
let server: Server;
let answerWith: RequestListener;
let requests: number;
let market: TestMarket;
let headers: Record<string, string>;
beforeEach(async () => {
  requests = 0;
  server = createServer((request, reply) => {
    requests += 1;
    answerWith(request, reply);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const agents = createFakeAgents();
  market = await createTestMarket({ agents });
  const { port } = server.address() as AddressInfo;
  const { record } = createGatewayAgents({
    gatewayUrl: `http://127.0.0.1:${port}`,
    gatewayHotkey: market.validator.hotkey,
    signer: testSigner(5),
    clock: market.clock,
    random: systemRandom,
  });
  agents.record = record;
  const operator = await market.signUp();
  await market.setOperator(operator);
  headers = operator.session;
});
afterEach(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await market.close();
});

const read = () => market.call('GET', '/operator/validator/cycles', { headers });

function text(status: number, body: string): RequestListener {
  return (_request, reply) => {
    reply.writeHead(status, { 'content-type': 'application/json' });
    reply.end(body);
  };
}

const cycle = { number: 1, ended_at: 'x', passed: 1, failed: 0, withheld: 0 };
const tooLong: RequestListener = (_request, reply) => {
  reply.on('error', () => undefined);
  const part = Buffer.alloc(MIB, ' ');
  for (let sent = 0; sent < 20; sent += 1) reply.write(part);
  reply.end(JSON.stringify({ cycles: [], next: null }));
};

it.each<[string, RequestListener]>([
  ['an internal error', text(500, '{}')],
  ['text that is not JSON', text(200, '<html>')],
  ['an empty response', text(200, '')],
  ['a document of another form', text(200, '{"cycles":{}}')],
  ['a wrong type in a list', text(200, JSON.stringify({ cycles: [{ ...cycle, passed: '1' }] }))],
  [
    'more entries than a page has',
    text(200, JSON.stringify({ cycles: Array(101).fill(cycle), next: null })),
  ],
  ['a response of 20 MiB', tooLong],
  ['a redirect', text(302, '')],
  ['a 404 without an error', text(404, 'gone')],
  ['a broken connection', (request) => request.socket.destroy()],
])('returns 502 after %s, without the text of the validator', async (_, listener) => {
  answerWith = listener;
  const { status, body } = await read();
  expect([status, body.error.code]).toEqual([502, 'upstream_unavailable']);
  expect(body.message).toMatch(/^The validator's record is not available/);
  expect(body.message.length).toBeLessThan(300);
});

it('relays a 404 of the validator with its message', async () => {
  const error = { code: 'not_found', message: 'This validator has no cycle 7', hint: 'List them.' };
  answerWith = text(404, JSON.stringify({ error }));
  const { status, body } = await read();
  expect([status, body.error]).toMatchObject([404, error]);
});

it('omits members that the interface does not have', async () => {
  answerWith = text(200, JSON.stringify({ cycles: [{ ...cycle, secret: 'x' }], next: null, y: 1 }));
  expect((await read()).body).toEqual({ cycles: [cycle], next: null });
});

it('relays texts unchanged, with any characters', async () => {
  const odd = '\u0000 \u2028 \ud800 \\ " é 😀 </script> \u202e';
  const id = '0'.repeat(64);
  const evidence = {
    id,
    executor_id: '00000000-0000-4000-8000-000000000000',
    seq: 1,
    finished_at: 'x',
    verdict: 'ok',
    signed_as: 'podwright-evidence-v2\n',
    header: odd,
    document: odd,
    dropped_at: null,
    signature: `0x${'a'.repeat(128)}`,
  };
  answerWith = text(200, JSON.stringify(evidence));
  const path = `/operator/validator/evidence/${id}`;
  const { status, body } = await market.call('GET', path, { headers });
  expect([status, body]).toEqual([200, evidence]);
});

it('ends the request after 8 seconds, also if the response has started', async () => {
  for (const listener of [() => undefined, slowBody] as RequestListener[]) {
    answerWith = listener;
    const before = requests;
    const reading = read();
    await eventually('the request', async () => requests > before);
    await market.clock.advance(8_000);
    const { status, body } = await reading;
    expect([status, body.error.code]).toEqual([502, 'upstream_unavailable']);
  }
});

const slowBody: RequestListener = (_request, reply) => {
  reply.writeHead(200, { 'content-type': 'application/json' });
  reply.write('{"cycles":[');
};

it('returns 502 while the validator is down', async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  const { status, body } = await read();
  expect([status, body.error.code]).toEqual([502, 'upstream_unavailable']);
});
