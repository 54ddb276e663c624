import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { createManualClock } from '../../../../test/fakes/manual-clock.ts';
import {
  createTestCentral,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { createFileAlphaRates, createHttpAlphaRates } from '../../platform/adapters/alpha-rates.ts';

const RATES = [
  { netuid: 51, name: 'lium', symbol: 'τ51', rate_usd: 3 },
  { netuid: 4, name: 'targon', symbol: 'τ4', rate_usd: 0.25, is_default: true },
];

const folder = mkdtempSync(join(tmpdir(), 'alpha-'));
afterAll(() => rmSync(folder, { recursive: true }));

function rateFile(content: unknown): string {
  const path = join(folder, 'rates.json');
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

let central: TestCentral | null = null;
afterEach(async () => {
  await central?.close();
  central = null;
});

async function ask(alphaRates: ReturnType<typeof createFileAlphaRates> | null, path: string) {
  central ??= await createTestCentral({ alphaRates });
  // The unknown key is ignored: these routes need no credential.
  return central.call('GET', `/balance${path}`, { headers: { 'x-api-key': 'sk_unknown' } });
}

it('quotes dollars in tokens of a subnet at the subnet’s rate, rounded up to the smallest part of a token', async () => {
  const rates = createFileAlphaRates(rateFile(RATES));
  const quote = await ask(rates, '/convert/alpha?amount=1&netuid=51');
  expect([quote.status, quote.body]).toEqual([
    200,
    { original: 1, converted: 0.333333334, rate: 3, netuid: 51 },
  ]);
  expect((await ask(rates, '/convert/alpha?amount=1')).body).toMatchObject({
    netuid: 4,
    converted: 4,
  });
  expect((await ask(rates, '/alpha/subnets')).body).toEqual([
    { ...RATES[0], is_default: false },
    RATES[1],
  ]);
  for (const [query, status] of [
    ['amount=0', 422],
    ['amount=-1', 422],
    ['netuid=51', 422],
    ['amount=1e3', 422],
    ['amount=1&netuid=1.5', 422],
  ] as const) {
    expect([query, (await ask(rates, `/convert/alpha?${query}`)).status]).toEqual([query, status]);
  }
});

it.each([
  ['a subnet without a rate', 'amount=1&netuid=7', 7],
  ['a marketplace without rates', 'amount=1&netuid=51', 51],
  ['a marketplace without rates or a subnet', 'amount=1', 0],
])('quotes null for %s', async (what, query, netuid) => {
  const isKnown = what === 'a subnet without a rate';
  const rates = isKnown ? createFileAlphaRates(rateFile(RATES)) : null;
  const quote = await ask(rates, `/convert/alpha?${query}`);
  expect([quote.status, quote.body]).toEqual([
    200,
    { original: 1, converted: null, rate: null, netuid },
  ]);
  const subnets = await ask(rates, '/alpha/subnets');
  expect([subnets.status, subnets.body.length]).toEqual([200, isKnown ? 2 : 0]);
});

it.each([
  ['no JSON', '{'],
  ['an empty list', []],
  ['a rate of zero', [{ ...RATES[0], rate_usd: 0 }]],
  ['a netuid twice', [RATES[0], RATES[0]]],
  ['two defaults', [RATES[1], { ...RATES[0], is_default: true }]],
])('rejects a file with %s and names the file', (_, content) => {
  expect(() => createFileAlphaRates(rateFile(content))).toThrow('CENTRAL_ALPHA_RATES');
});

let asked = 0;
let answer: { status: number; body: string };
const server = createServer((_, response) => {
  asked += 1;
  response.writeHead(answer.status, { 'content-type': 'application/json' }).end(answer.body);
});
beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)));
afterAll(() => new Promise((resolve) => server.close(resolve)));
beforeEach(() => {
  asked = 0;
  answer = { status: 200, body: JSON.stringify(RATES) };
});

function httpRates() {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const clock = createManualClock();
  return { clock, rates: createHttpAlphaRates({ url: `http://127.0.0.1:${address.port}`, clock }) };
}

it('queries a service once a minute for any number of requests', async () => {
  const { clock, rates } = httpRates();
  const many = await Promise.all([rates.subnets(), rates.subnets(), rates.subnets()]);
  expect(many[2]).toHaveLength(2);
  await clock.advance(59_999);
  await rates.subnets();
  expect(asked).toBe(1);
  await clock.advance(1);
  await rates.subnets();
  expect(asked).toBe(2);
});

it('uses received rates for ten minutes, and retries a failing service every ten seconds', async () => {
  const { clock, rates } = httpRates();
  await rates.subnets();
  await clock.advance(60_000);
  answer = { status: 500, body: '' };
  expect(await rates.subnets()).toHaveLength(2);
  expect(await rates.subnets()).toHaveLength(2);
  expect(asked).toBe(2);
  await clock.advance(540_000);
  await expect(rates.subnets()).rejects.toMatchObject({
    code: 'upstream_unavailable',
    status: 503,
  });
  await expect(rates.subnets()).rejects.toMatchObject({ status: 503 });
  expect(asked).toBe(3);
  answer = { status: 200, body: JSON.stringify(RATES) };
  await clock.advance(10_000);
  expect(await rates.subnets()).toHaveLength(2);
});

it.each(['[{"netuid":1}]', 'no json', `"${'x'.repeat(300_000)}"`])(
  'rejects the answer %.20s of a service',
  async (body) => {
    answer = { status: 200, body };
    await expect(httpRates().rates.subnets()).rejects.toMatchObject({ status: 503 });
  },
);
