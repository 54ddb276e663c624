/** Table of addresses in MaxMind's format (.mmdb), held in memory and read again when the file changes. */
import { readFileSync, statSync } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { Reader, type Response } from 'maxmind';
import { z } from 'zod';
import type { Clock } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { AddressPlace, AddressTable } from '../ports.ts';

export const ADDRESS_TABLE_VARIABLE = 'CENTRAL_ADDRESS_TABLE';

const FORMAT_VERSION = 2;
/** Maximum size of a table; the largest tables of cities have about 130 MB. */
const MAX_BYTES = 1_000_000_000;
/** Shortest pause between two checks of the file. */
const CHECK_MS = 10_000;
/** Addresses whose lookup touches both ends of the tree, to detect a damaged file when it is read. */
const PROBES = ['0.0.0.1', '127.255.255.255', '128.0.0.0', '255.255.255.255'];

/** Members of tables of countries and cities that are used. Tables of other kinds have none of these members. */
const Entry = z.object({
  country: z.object({ iso_code: z.string().regex(/^[A-Z]{2}$/) }),
  location: z
    .object({
      latitude: z.number().min(-90).max(90),
      longitude: z.number().min(-180).max(180),
      accuracy_radius: z.number().min(0).optional(),
    })
    .optional()
    .catch(undefined),
});

type Version = { mtimeMs: number; size: number };
type Loaded = { reader: Reader<Response>; version: Version };

export type AddressTableFile = AddressTable & {
  /** Reads the file if it has changed. `find` calls it in the background, at most every ten seconds. */
  refresh(): Promise<void>;
};

/**
 * Throws a ConfigError that names the file and the problem. If a changed file cannot be read later, the failure is
 * logged, and the previous table continues to be used.
 */
export function openAddressTable(
  path: string,
  { clock, log }: { clock: Clock; log: Log },
): AddressTableFile {
  let table = open(path);
  let failed: Version | null = null;
  let checkedMs = clock.monotonicMs();
  let running: Promise<void> | null = null;

  async function reload(): Promise<void> {
    let version: Version | null = null;
    try {
      version = versionOf(await stat(path));
      if (isSame(version, table.version) || isSame(version, failed)) return;
      table = { reader: parse(await readBounded(path, version)), version };
      failed = null;
      log.info({ path }, 'table of addresses read again');
    } catch (error) {
      failed = version;
      log.warn(
        { path, err: error },
        'the table of addresses could not be read; the previous table continues to be used',
      );
    }
  }

  function refresh(): Promise<void> {
    checkedMs = clock.monotonicMs();
    running ??= reload().finally(() => {
      running = null;
    });
    return running;
  }

  return {
    refresh,
    find(ip) {
      if (clock.monotonicMs() - checkedMs >= CHECK_MS) void refresh();
      try {
        return placeOf(table.reader.get(ip));
      } catch (error) {
        log.warn({ path, err: error }, 'lookup in the table of addresses failed');
        return null;
      }
    },
  };
}

function open(path: string): Loaded {
  try {
    const version = versionOf(statSync(path));
    requireSize(version);
    return { reader: parse(readFileSync(path)), version };
  } catch (error) {
    throw new ConfigError(
      `${ADDRESS_TABLE_VARIABLE}: ${path} is not a table of addresses in MaxMind's format (.mmdb): ${messageOf(error)}`,
    );
  }
}

async function readBounded(path: string, version: Version): Promise<Buffer> {
  requireSize(version);
  return readFile(path);
}

function requireSize({ size }: Version): void {
  if (size > MAX_BYTES) throw new Error(`larger than ${MAX_BYTES} bytes`);
}

function parse(bytes: Buffer): Reader<Response> {
  const reader = new Reader<Response>(bytes);
  const { binaryFormatMajorVersion: version, searchTreeSize } = reader.metadata;
  if (version !== FORMAT_VERSION) throw new Error(`unknown version ${version} of the format`);
  if (searchTreeSize >= bytes.length) throw new Error('the file is truncated');
  for (const ip of PROBES) reader.get(ip);
  return reader;
}

function placeOf(found: unknown): AddressPlace | null {
  const entry = Entry.safeParse(found);
  if (!entry.success) return null;
  const { country, location } = entry.data;
  return {
    countryCode: country.iso_code,
    lat: location?.latitude ?? null,
    lon: location?.longitude ?? null,
    accuracyKm: location?.accuracy_radius ?? null,
  };
}

function versionOf({ mtimeMs, size }: Version): Version {
  return { mtimeMs, size };
}

function isSame(a: Version, b: Version | null): boolean {
  return b !== null && a.mtimeMs === b.mtimeMs && a.size === b.size;
}
