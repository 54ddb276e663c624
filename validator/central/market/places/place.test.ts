import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type AddedNode,
  createTestMarket,
  type TestMarket,
  testSigner,
} from '../../../../test/fakes/scenes/market-fixture.ts';
import type { AddressPlace } from '../../platform/ports.ts';

/** Entry of the table for the address that all nodes of a test market have. */
let listed: AddressPlace | null = null;
let market: TestMarket;
let token: string;
beforeAll(async () => {
  market = await createTestMarket({ addresses: { find: () => listed } });
  token = await market.logIn();
});
afterAll(() => market.close());

const GERMANY = { countryCode: 'DE', lat: null, lon: null, accuracyKm: null };
const BERLIN = {
  country_code: 'de',
  region: 'be',
  city: 'Berlin',
  lat: 52.52,
  lon: 13.405,
  timezone: 'Europe/Berlin',
};

const enter = (id: string, body: object, by = token) =>
  market.portal('POST', `/executors/${id}/location`, { token: by, body });
const locationOf = async (id: string) =>
  (await market.portal('GET', `/executors/${id}/location`, { token })).body.data;
const onMarket = async (id: string) =>
  (await market.call('GET', '/executors')).body.find((node: { id: string }) => node.id === id);

async function report(node: AddedNode, change: object = {}) {
  await market.clock.advance(1_000);
  expect((await market.report(node, change)).status).toBe(200);
}

describe('a place that the provider enters', () => {
  it('is shown to renters and to the provider, and can be removed', async () => {
    listed = null;
    const { id } = await market.verifiedNode();
    expect(await onMarket(id)).toMatchObject({ location: null, location_check: null });
    const { status, body } = await enter(id, BERLIN);
    const shown = {
      country: 'Germany',
      country_code: 'DE',
      region: 'BE',
      region_name: null,
      city: 'Berlin',
      zip: null,
      lat: 52.52,
      lon: 13.405,
      timezone: 'Europe/Berlin',
    };
    expect([status, body.data]).toMatchObject([
      200,
      { entered: shown, location_check: 'entered', evidence: [] },
    ]);
    expect(await onMarket(id)).toMatchObject({ location: shown, location_check: 'entered' });
    const row = (await market.portal('GET', `/executors/${id}`, { token })).body.data;
    expect(row).toMatchObject({ location: shown, location_check: 'entered' });
    const removed = await market.portal('DELETE', `/executors/${id}/location`, { token });
    expect(removed.body.data).toMatchObject({ entered: null, location_check: null, evidence: [] });
    expect(await onMarket(id)).toMatchObject({ location: null, location_check: null });
  });

  it.each([
    ['no country', {}],
    ['an unknown country', { country_code: 'XX' }],
    ['a country name', { country_code: 'Germany' }],
    ['a latitude beyond the pole', { country_code: 'DE', lat: 90.1, lon: 0 }],
    ['a latitude without a longitude', { country_code: 'DE', lat: 1 }],
    ['a region with its country', { country_code: 'DE', region: 'DE-BE' }],
    ['a city with control characters', { country_code: 'DE', city: 'Ber\u0000lin' }],
    ['an unknown time zone', { country_code: 'DE', timezone: 'Mars/Olympus' }],
  ])('is rejected with %s', async (_, body) => {
    const { id } = await market.addNode();
    expect((await enter(id, body)).status).toBe(422);
  });

  it('is entered and read by the owner only', async () => {
    const { id } = await market.addNode();
    const stranger = await market.logIn(testSigner(9));
    expect((await enter(id, BERLIN, stranger)).status).toBe(403);
    const read = await market.portal('GET', `/executors/${id}/location`, { token: stranger });
    expect(read.status).toBe(403);
  });
});

describe('the comparison with the table of addresses', () => {
  it('confirms the country', async () => {
    listed = GERMANY;
    const { id } = await market.verifiedNode();
    expect((await enter(id, BERLIN)).body.data).toMatchObject({
      location_check: 'confirmed',
      evidence: [{ source: 'address_table', result: 'confirms' }],
    });
    expect(await onMarket(id)).toMatchObject({ location_check: 'confirmed' });
  });

  it('hides a place in another country', async () => {
    listed = { ...GERMANY, countryCode: 'US' };
    const { id } = await market.verifiedNode();
    expect((await enter(id, BERLIN)).body.data).toMatchObject({
      entered: { country_code: 'DE' },
      location_check: 'contradicted',
      evidence: [{ result: 'contradicts', detail: 'entered DE, address table US' }],
    });
    expect(await onMarket(id)).toMatchObject({ location: null, location_check: 'contradicted' });
  });

  it('is repeated with every verdict', async () => {
    listed = { ...GERMANY, countryCode: 'US' };
    const node = await market.verifiedNode();
    await enter(node.id, BERLIN);
    listed = GERMANY;
    await report(node);
    expect(await onMarket(node.id)).toMatchObject({
      location: { country_code: 'DE' },
      location_check: 'confirmed',
    });
  });
});

describe('the comparison with round trips', () => {
  const SYDNEY = { lat: -33.87, lon: 151.21 };

  it('contradicts a place that light could not have reached, until a report allows it', async () => {
    listed = null;
    const node = await market.verifiedNode();
    await report(node, { round_trip: { ms: 20, ...SYDNEY } });
    expect((await enter(node.id, BERLIN)).body.data).toMatchObject({
      location_check: 'contradicted',
      evidence: [{ source: 'round_trip', result: 'contradicts' }],
    });
    // The next report without a measurement keeps the last one.
    await report(node);
    expect((await locationOf(node.id)).location_check).toBe('contradicted');
    await report(node, { round_trip: { ms: 250, ...SYDNEY } });
    expect(await onMarket(node.id)).toMatchObject({ location_check: 'entered' });
  });

  it('confirms a place near the validator', async () => {
    listed = null;
    const node = await market.verifiedNode();
    await enter(node.id, BERLIN);
    await report(node, { round_trip: { ms: 0.4, lat: 52.5, lon: 13.4 } });
    expect(await onMarket(node.id)).toMatchObject({ location_check: 'confirmed' });
  });
});
