import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { createManualClock } from '../../../../test/fakes/manual-clock.ts';
import {
  type AddedNode,
  createTestMarket,
  DEFAULT_TEMPLATE,
  type TestMarket,
  testSigner,
} from '../../../../test/fakes/scenes/market-fixture.ts';
import { cityEntry, encodeAddressTable } from '../../../../test/fixtures/address-table.ts';
import { testInventory } from '../../../../test/fixtures/host-inventory.ts';
import { openAddressTable } from '../../platform/adapters/address-table.ts';
import type { AddressPlace } from '../../platform/ports.ts';

/** Entry of the address table for the address that all nodes of a test market share. */
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

  it('can be entered and read only by the node’s provider', async () => {
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

  it('hides a place whose country is contradicted', async () => {
    listed = { ...GERMANY, countryCode: 'US' };
    const { id } = await market.verifiedNode();
    expect((await enter(id, BERLIN)).body.data).toMatchObject({
      entered: { country_code: 'DE' },
      location_check: 'contradicted',
      evidence: [{ result: 'contradicts', detail: 'entered DE, address table US' }],
    });
    expect(await onMarket(id)).toMatchObject({ location: null, location_check: 'contradicted' });
  });

  it('uses the address table of the operator, also after the file was replaced', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'podwright-places-'));
    const file = join(folder, 'cities.mmdb');
    const write = (code: string, place: { lat: number; lon: number; km: number }) =>
      writeFileSync(file, encodeAddressTable({ '127.0.0.0/8': cityEntry(code, place) }));
    const clock = createManualClock();
    const log = createLog({ name: 'test', level: 'silent' });
    write('DE', { lat: 52.5, lon: 13.4, km: 20 });
    const addresses = openAddressTable(file, { clock, log });
    const filed = await createTestMarket({ addresses });
    try {
      const node = await filed.verifiedNode();
      const owner = await filed.logIn();
      const path = `/executors/${node.id}/location`;
      const entered = await filed.portal('POST', path, { token: owner, body: BERLIN });
      expect(entered.body.data).toMatchObject({
        location_check: 'confirmed',
        evidence: [{ detail: 'entered DE, address table DE; 2 km apart, 270 km allowed' }],
      });
      write('FR', { lat: 48.86, lon: 2.35, km: 5 });
      await addresses.refresh();
      await filed.clock.advance(1_000);
      await filed.report(node);
      expect((await filed.portal('GET', path, { token: owner })).body.data).toMatchObject({
        location_check: 'contradicted',
        evidence: [{ detail: 'entered DE, address table FR' }],
      });
      const [row] = (await filed.call('GET', '/executors')).body;
      expect(row).toMatchObject({ id: node.id, location: null });
    } finally {
      await filed.close();
      rmSync(folder, { recursive: true });
    }
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

  it('contradicts a place that light could not have reached, until a later report makes the place possible', async () => {
    listed = null;
    const node = await market.verifiedNode();
    await report(node, { round_trip: { ms: 20, ...SYDNEY } });
    expect((await enter(node.id, BERLIN)).body.data).toMatchObject({
      location_check: 'contradicted',
      evidence: [{ source: 'round_trip', result: 'contradicts' }],
    });
    // A report without a measurement keeps the last measurement.
    await report(node);
    expect((await locationOf(node.id)).location_check).toBe('contradicted');
    await report(node, { round_trip: { ms: 250, ...SYDNEY } });
    expect(await onMarket(node.id)).toMatchObject({ location_check: 'entered' });
  });

  it('uses the last round trip of each validator, for a week', async () => {
    const second = testSigner(7);
    const two = await createTestMarket({ validators: [testSigner(1).hotkey, second.hotkey] });
    try {
      const node = await two.verifiedNode();
      const path = `/executors/${node.id}/location`;
      await two.portal('POST', path, { token: await two.logIn(), body: BERLIN });
      const reported = async (round_trip: object, signer = testSigner(1)) => {
        const inventory = testInventory(node.id, { collectedMs: two.clock.now() });
        const report = { verdict: 'verified', checked_at_ms: two.clock.now(), checks: [] };
        const body = { ...two.healthCheck(node), report: { ...report, inventory, round_trip } };
        const sent = await two.asValidator('/executor-health-check', body, signer);
        expect(sent.status).toBe(200);
        const read = await two.portal('GET', path, { token: await two.logIn() });
        const { location_check: check, evidence } = read.body.data;
        return [check, evidence.map(({ result }: { result: string }) => result).toSorted()];
      };
      const near = { ms: 0.4, lat: 52.5, lon: 13.4 };
      expect(await reported({ ms: 20, ...SYDNEY }, second)).toEqual([
        'contradicted',
        ['contradicts'],
      ]);
      const both = ['contradicted', ['confirms', 'contradicts']];
      expect(await reported(near)).toEqual(both);
      expect(await reported(near)).toEqual(both);
      expect(await reported({ ms: 250, ...SYDNEY }, second)).toEqual([
        'confirmed',
        ['confirms', 'undecided'],
      ]);
      await two.clock.advance(7 * 86_400_000);
      expect(await reported(near)).toEqual(['confirmed', ['confirms']]);
    } finally {
      await two.close();
    }
  });

  it('confirms a place near the validator', async () => {
    listed = null;
    const node = await market.verifiedNode();
    await enter(node.id, BERLIN);
    await report(node, { round_trip: { ms: 0.4, lat: 52.5, lon: 13.4 } });
    expect(await onMarket(node.id)).toMatchObject({ location_check: 'confirmed' });
  });
});

describe('the filters by place', () => {
  let berlin: AddedNode;
  let munich: AddedNode;
  let tokyo: AddedNode;
  let nowhere: AddedNode;
  let filtered: TestMarket;
  beforeAll(async () => {
    filtered = await createTestMarket();
    const owner = await filtered.logIn();
    const at = async (place: object) => {
      const node = await filtered.verifiedNode();
      const sent = { token: owner, body: place };
      await filtered.portal('POST', `/executors/${node.id}/location`, sent);
      return node;
    };
    berlin = await at(BERLIN);
    munich = await at({ country_code: 'DE', region_name: 'Bavaria' });
    tokyo = await at({ country_code: 'JP', region: '13', lat: 35.68, lon: 139.77 });
    nowhere = await filtered.verifiedNode();
  });
  afterAll(() => filtered.close());

  const listOf = async (query: string) =>
    (await filtered.call('GET', `/executors?${query}`)).body.map(({ id }: { id: string }) => id);
  const rent = async (spec: object) => {
    const account = await filtered.renter();
    return filtered.call('POST', '/executors/rent-by-spec', {
      headers: account.key,
      body: { pod_name: 'placed', template_id: DEFAULT_TEMPLATE, dry_run: true, ...spec },
    });
  };

  it.each([
    ['country=de', () => [berlin, munich]],
    ['country=Germany', () => [berlin, munich]],
    ['country=FR', () => []],
    ['region=be', () => [berlin]],
    ['region=DE-BE', () => [berlin]],
    ['region=bavaria', () => [munich]],
    ['country=JP&region=13', () => [tokyo]],
    ['country=DE&region=13', () => []],
    ['lat=53.55&lon=10&max_distance_mile=200', () => [berlin]],
    ['lat=53.55&lon=10&max_distance_mile=100', () => []],
  ])(
    '%s selects the nodes at the place, in the list and in rent-by-spec',
    async (query, expected) => {
      const ids = expected().map(({ id }) => id);
      expect((await listOf(query)).toSorted()).toEqual(ids.toSorted());
      const {
        lat,
        lon,
        max_distance_mile: miles,
        ...names
      } = Object.fromEntries(new URLSearchParams(query));
      const near = { lat: Number(lat), lon: Number(lon), max_distance_mile: Number(miles) };
      const { status, body } = await rent({ ...names, ...(lat === undefined ? {} : near) });
      if (ids.length === 0) expect(status).toBe(409);
      else expect([status, ids.includes(body.selected_executor.id)]).toEqual([200, true]);
    },
  );

  it('report the number of nodes without a location when no node is left', async () => {
    const { status, body } = await rent({ country: 'FR' });
    expect([status, body]).toMatchObject([
      409,
      {
        constraint: 'country',
        without_location: 1,
        candidates_before: 4,
        message: 'No node with country FR; best offered DE; 1 of 4 nodes has no location',
      },
    ]);
    const far = await rent({ lat: 0, lon: 0, max_distance_mile: 10 });
    // The node in Munich has no coordinates.
    expect(far.body).toMatchObject({
      constraint: 'max_distance_mile',
      best_offered: 3710.9,
      without_location: 2,
    });
    const listed = await filtered.call('GET', '/executors?country=FR&explain=true');
    expect(listed.body).toMatchObject({ executors: [], without_location: 1 });
    const near = '/executors?lat=0&lon=0&max_distance_mile=10&explain=true';
    expect((await filtered.call('GET', near)).body).toMatchObject({
      funnel: [
        { constraint: 'offered', remaining: 4 },
        { constraint: 'max_distance_mile', remaining: 0 },
      ],
      nearest: [
        { constraint: 'max_distance_mile', offered: 3710.9, executor_id: berlin.id },
        { executor_id: tokyo.id },
        { offered: 'unknown' },
      ],
      without_location: 2,
    });
    const other = await filtered.call('GET', '/executors?price_lte=0&explain=true');
    expect(other.body.without_location).toBeNull();
    expect(await listOf('country=DE')).not.toContain(nowhere.id);
  });

  it('select pods on the nodes', async () => {
    const account = await filtered.renter();
    const rented = await filtered.rent(account, berlin.id);
    expect(rented.status).toBe(200);
    const pods = async (query: string) =>
      (await filtered.call('GET', `/pods?${query}`, { headers: account.key })).body.map(
        ({ id }: { id: string }) => id,
      );
    expect(await pods('country=germany&region=BE')).toEqual([rented.body.id]);
    expect(await pods('lat=53.55&lon=10&max_distance_mile=200')).toEqual([rented.body.id]);
    expect(await pods('country=JP')).toEqual([]);
    expect(await pods('lat=53.55&lon=10&max_distance_mile=100')).toEqual([]);
    const ended = await filtered.call('DELETE', `/pods/${rented.body.id}`, {
      headers: account.key,
    });
    expect(ended.status).toBe(200);
    await filtered.sync();
  });

  it('require coordinates for a distance', async () => {
    const { status, body } = await rent({ max_distance_mile: 10, lat: 1 });
    expect([status, body.validation_errors]).toMatchObject([422, [{ field: 'body.lon' }]]);
  });

  it('leave out a node whose place is contradicted', async () => {
    const node = await filtered.verifiedNode();
    const body = { country_code: 'FR', lat: 48.86, lon: 2.35 };
    const owner = await filtered.logIn();
    await filtered.portal('POST', `/executors/${node.id}/location`, { token: owner, body });
    expect(await listOf('country=FR')).toEqual([node.id]);
    await filtered.clock.advance(1_000);
    await filtered.report(node, { round_trip: { ms: 1, lat: 1.35, lon: 103.82 } });
    expect(await listOf('country=FR')).toEqual([]);
  });
});
