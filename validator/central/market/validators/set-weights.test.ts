import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type LatestSetWeights, signSetWeights } from '#shared/api/central/set-weights.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { signedHeaders } from '#shared/signing/signed-request.ts';
import { type LocalSigner, toHex } from '#shared/signing/sr25519.ts';
import {
  createTestMarket,
  type TestMarket,
  testSigner,
} from '../../../../test/fakes/scenes/market-fixture.ts';

const OTHER = testSigner(8);

let market: TestMarket;
let own: string;
beforeAll(async () => {
  market = await createTestMarket({
    validators: [testSigner(1).hotkey, OTHER.hotkey],
  });
  own = market.validator.hotkey;
});
afterAll(() => market.close());
beforeEach(async () => {
  await market.ports.db.deleteFrom('set_weights').execute();
});

/** Weights set `micros` microseconds after the start of the market's clock. */
function payload(micros: number, change: Partial<LatestSetWeights> = {}): LatestSetWeights {
  return {
    netuid: 51,
    uids: [0, 7],
    weights: [65_535, 1_200],
    version_key: 19,
    wait_for_finalization: false,
    wait_for_inclusion: false,
    current_block: null,
    updated_at: `2027-01-15T08:00:00.${String(micros).padStart(6, '0')}Z`,
    ...change,
  };
}

type Change = { signer?: LocalSigner; path?: string; headers?: Record<string, string> };

async function post(body: LatestSetWeights, change: Change = {}) {
  const { signer = market.validator, path = own, headers } = change;
  return market.call('POST', `/validator/${path}/latest-set-weights`, {
    headers: headers ?? { authorization: await signSetWeights(body, signer) },
    body,
  });
}

function timestampHeaders(signer: LocalSigner): Record<string, string> {
  const timestamp = String(Math.floor(market.clock.now() / 1_000));
  const signature = toHex(signer.sign(new TextEncoder().encode(timestamp)));
  return { hotkey: signer.hotkey, timestamp, signature };
}

function read(signer: LocalSigner = market.validator, path: string = signer.hotkey) {
  const headers = timestampHeaders(signer);
  return market.call('GET', `/validator/${path}/latest-set-weights`, { headers });
}

const newest = () => market.call('GET', '/latest-set-weights');

describe('the latest weights', () => {
  it('are returned as they were posted, either those of one validator or the newest of all validators', async () => {
    expect((await read()).status).toBe(404);
    expect((await newest()).body.error.code).toBe('not_found');
    expect(await post(payload(5))).toMatchObject({ status: 200, body: { success: true } });
    await post(payload(4), { signer: OTHER, path: OTHER.hotkey });
    expect((await read()).body).toEqual({ ...payload(5), validator_key: own });
    expect((await read(OTHER)).body).toEqual({ ...payload(4), validator_key: OTHER.hotkey });
    expect((await newest()).body).toEqual({ ...payload(5), validator_key: own });
  });

  it('can be posted twice, and are never replaced by older weights', async () => {
    await post(payload(5));
    expect((await post(payload(5))).status).toBe(200);
    for (const stale of [payload(4), payload(5, { weights: [1, 2] })]) {
      expect((await post(stale)).body.validation_errors[0].field).toBe('body.updated_at');
    }
    await post(payload(6, { weights: [1, 2] }));
    expect((await read()).body.weights).toEqual([1, 2]);
  });

  it('cannot be more than 5 minutes in the future', async () => {
    const { status } = await post(payload(0, { updated_at: '2027-01-15T08:05:00.000001Z' }));
    expect(status).toBe(422);
    expect((await post(payload(0, { updated_at: '2027-01-15T08:05:00.000000Z' }))).status).toBe(
      200,
    );
  });
});

describe('a signature', () => {
  it('covers every field, and is valid for any order of fields and without current_block', async () => {
    const { current_block: _, ...rest } = payload(1);
    const reversed = Object.fromEntries(Object.entries(rest).reverse()) as LatestSetWeights;
    expect((await post(reversed)).status).toBe(200);
    expect((await read()).body).toEqual({ ...rest, validator_key: own });
    const authorization = await signSetWeights(payload(2), market.validator);
    for (const change of [
      { netuid: 1 },
      { uids: [1, 7] },
      { weights: [65_535, 1_201] },
      { version_key: 20 },
      { wait_for_finalization: true },
      { wait_for_inclusion: true },
      { current_block: 1 },
      { updated_at: payload(3).updated_at },
    ]) {
      const body = payload(2, change);
      const { status } = await post(body, { headers: { authorization } });
      expect([change, status]).toEqual([change, 401]);
    }
  });

  it.each<[string, () => Change | Promise<Change>, number]>([
    ['is missing', () => ({ headers: {} }), 401],
    ['has a scheme before it', () => bearer((hex) => `Bearer ${hex}`), 401],
    ['is truncated', () => bearer((hex) => hex.slice(0, -2)), 401],
    ['belongs to another validator', () => ({ signer: OTHER }), 401],
    [
      'belongs to an unknown key',
      () => ({ signer: testSigner(9), path: testSigner(9).hotkey }),
      401,
    ],
    ['is for an invalid hotkey', () => ({ path: 'nonsense' }), 422],
    [
      'comes with headers of another validator',
      () => bearer((hex) => hex, { hotkey: OTHER.hotkey }),
      403,
    ],
  ])('is rejected if it %s', async (_, change, status) => {
    expect((await post(payload(1), await change())).status).toBe(status);
    expect((await newest()).status).toBe(404);
  });

  it('is checked together with signed headers if the request has them', async () => {
    const url = new URL(`http://x/api/validator/${own}/latest-set-weights`);
    const body = JSON.stringify(payload(1));
    const signed = async (audience: string, text = body) => ({
      authorization: await signSetWeights(payload(1), market.validator),
      ...(await signedHeaders(
        { audience, signer: market.validator, random: systemRandom },
        { method: 'POST', url, body: text, timestampMs: market.clock.now() },
      )),
    });
    expect((await post(payload(1), { headers: await signed('elsewhere') })).status).toBe(401);
    expect((await post(payload(1), { headers: await signed('central', '{}') })).status).toBe(401);
    expect((await post(payload(1), { headers: await signed('central') })).status).toBe(200);
  });
});

async function bearer(
  write: (hex: string) => string,
  headers: Record<string, string> = {},
): Promise<Change> {
  const hex = await signSetWeights(payload(1), market.validator);
  return { headers: { authorization: write(hex), ...headers } };
}

it.each<[string, object]>([
  ['unequal lengths', { weights: [1] }],
  ['a weight beyond 16 bits', { weights: [1, 65_536] }],
  ['an unknown field', { extra: 1 }],
  ['a time without microseconds', { updated_at: '2027-01-15T08:00:00Z' }],
  ['an impossible date', { updated_at: '2027-02-30T08:00:00.000000Z' }],
  ['a negative block', { current_block: -1 }],
])('rejects %s', async (_, change) => {
  const { status, body } = await post({ ...payload(1), ...change });
  expect([status, body.error.code]).toEqual([422, 'validation_error']);
});

it('rejects fractions, whose serialization differs between programs', async () => {
  const { status } = await market.call('POST', `/validator/${own}/latest-set-weights`, {
    headers: { authorization: await signSetWeights(payload(1), market.validator) },
    body: { ...payload(1), weights: [0.5, 1] },
  });
  expect(status).toBe(422);
});

it('returns the weights to every client, and 422 for a path without a valid hotkey', async () => {
  await post(payload(5));
  const path = (hotkey: string) => `/validator/${hotkey}/latest-set-weights`;
  const open = await market.call('GET', path(own), { headers: { 'x-api-key': 'sk_unknown' } });
  expect([open.status, open.body.validator_key]).toEqual([200, own]);
  expect((await market.call('GET', path('nobody'))).status).toBe(422);
});
