import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { createManualClock } from '../../../../test/fakes/manual-clock.ts';
import { cityEntry, encodeAddressTable } from '../../../../test/fixtures/address-table.ts';
import { openAddressTable } from './address-table.ts';

const folder = mkdtempSync(join(tmpdir(), 'podwright-addresses-'));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
function fileOf(content: Buffer): string {
  files += 1;
  const path = join(folder, `${files}.mmdb`);
  writeFileSync(path, content);
  return path;
}

const BERLIN = cityEntry('DE', { lat: 52.52, lon: 13.405, km: 20 });
const TABLE = encodeAddressTable({
  '192.0.2.0/24': BERLIN,
  '198.51.100.0/25': { country: { iso_code: 'JP' } },
  '203.0.113.0/24': { autonomous_system_number: 64_496 },
});

function opened(path: string) {
  const clock = createManualClock();
  return {
    clock,
    table: openAddressTable(path, { clock, log: createLog({ name: 'test', level: 'silent' }) }),
  };
}

it('finds country, coordinates and accuracy', () => {
  const { table } = opened(fileOf(TABLE));
  expect(table.find('192.0.2.77')).toEqual({
    countryCode: 'DE',
    lat: 52.52,
    lon: 13.405,
    accuracyKm: 20,
  });
  const none = { lat: null, lon: null, accuracyKm: null };
  expect(table.find('198.51.100.127')).toEqual({ countryCode: 'JP', ...none });
});

// MaxMind's tool for tables (MaxMind::DB::Writer 0.300003) wrote these tables. It encodes IPv4 addresses in a tree of
// IPv6 addresses, as published tables do.
it.each([24, 28, 32])('reads a table of IPv6 addresses with records of %i bits', (bits) => {
  const file = new URL(
    `../../../../test/fixtures/address-tables/records-${bits}.mmdb`,
    import.meta.url,
  );
  const { table } = opened(fileURLToPath(file));
  const berlin = { countryCode: 'DE', lat: 52.52, lon: 13.405, accuracyKm: 20 };
  expect([table.find('192.0.2.7'), table.find('::ffff:192.0.2.7')]).toEqual([berlin, berlin]);
  expect(table.find('2001:db8::1')).toMatchObject({ countryCode: 'FR', accuracyKm: 5 });
  expect(table.find('127.0.0.1')).toMatchObject({ countryCode: 'JP', lat: null });
  // The entry has only the country of registration.
  expect([table.find('198.51.100.3'), table.find('203.0.113.9')]).toEqual([null, null]);
});

it.each([
  ['an address that is not listed', '198.51.100.128'],
  ['a private address', '127.0.0.1'],
  ['an entry without a country', '203.0.113.1'],
  ['an IPv6 address in a table of IPv4 addresses', '2001:db8::1'],
  ['text that is not an address', 'node.example'],
])('returns no place for %s', (_, ip) => {
  expect(opened(fileOf(TABLE)).table.find(ip)).toBeNull();
});

it.each([
  ['an empty file', Buffer.alloc(0)],
  ['another format', Buffer.from('{"192.0.2.0/24": "DE"}'.repeat(100))],
  ['a truncated file', TABLE.subarray(0, TABLE.length - 40)],
  ['a file without its first half', TABLE.subarray(TABLE.length - 170)],
])("rejects %s when the process starts, with the file's name in the error", (_, content) => {
  const path = fileOf(content);
  expect(() => opened(path)).toThrow(`CENTRAL_ADDRESS_TABLE: ${path} is not a table of addresses`);
});

it('rejects a missing file when the process starts', () => {
  expect(() => opened('/no/such/file')).toThrow(/CENTRAL_ADDRESS_TABLE: .*ENOENT/);
});

it('reads a changed file again, and continues to use the previous table if the new file is malformed', async () => {
  const path = fileOf(TABLE);
  const { table, clock } = opened(path);
  writeFileSync(path, Buffer.from('half written'));
  await table.refresh();
  expect(table.find('192.0.2.77')).toMatchObject({ countryCode: 'DE' });
  writeFileSync(path, encodeAddressTable({ '192.0.2.0/24': { country: { iso_code: 'FR' } } }));
  // The first lookup after CHECK_MS starts the refresh; this call waits for the same refresh.
  await clock.advance(10_000);
  table.find('192.0.2.77');
  await table.refresh();
  expect(table.find('192.0.2.77')).toMatchObject({ countryCode: 'FR' });
});
