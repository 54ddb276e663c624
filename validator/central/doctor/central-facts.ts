/** Facts for the central API's doctor, collected concurrently, each with a deadline. */
import { existsSync } from 'node:fs';
import { type ClockFacts, readClockFacts } from '#shared/check/clock.check.ts';
import { type DiskUse, nearestFolder, readDiskUse } from '#shared/check/disk.check.ts';
import type { DoctorPorts } from '#shared/check/doctor.ts';
import { type Observed, observe } from '#shared/check/observe.ts';
import { localHostAndPort } from '#shared/http/listen.ts';
import { PLAIN_TRANSPORT } from '#shared/tls/transport.ts';
import { type DatabaseFacts, readDatabaseFacts } from '../../database/database.check.ts';
import { isPostgresAddress } from '../../database/open-database.ts';
import type { DatabaseLocation } from '../../database/ownership.ts';
import { countRows, type RowCount } from '../../database/row-counts.ts';
import { observeHotkey } from '../../doctor/observed-hotkey.ts';
import { openKey } from '../../keys/key-file.ts';
import { type CentralConfig, centralSecretFile, centralSeedFile } from '../config.ts';
import { gatewayTransport } from '../platform/adapters/gateway-transport.ts';
import {
  centralDatabaseOf,
  databaseBackupsOf,
  readCentralSecret,
} from '../platform/central-home.ts';
import { readCentralDatabase } from '../platform/database/database.ts';

export type CentralFacts = {
  config: CentralConfig;
  /** Null before the central API created the database. */
  database: Observed<readonly RowCount[] | null>;
  /** Damage and backups of the database. */
  databaseFile: DatabaseFacts;
  /** ss58 of the central API's key; null before the central API created the key. */
  key: Observed<string | null>;
  /** Number of bytes; null before the central API created the secret. */
  secret: Observed<number | null>;
  /** ss58 that the gateway reports. */
  gateway: Observed<string>;
  /** ss58 that the listener at the central API's own address reports. */
  listener: Observed<string>;
  time: ClockFacts;
  disk: Observed<DiskUse>;
};

const READ_MS = 10_000;
const HOTKEY_MS = 5_000;

export async function readFacts(ports: DoctorPorts, config: CentralConfig): Promise<CentralFacts> {
  const { clock, runCommand } = ports;
  const baseUrl = config.CENTRAL_GATEWAY_URL.replace(/\/+$/, '');
  const own = localHostAndPort(config.CENTRAL_HOST, config.CENTRAL_PORT);
  const timeoutMs = HOTKEY_MS;
  const [database, databaseFile, key, secret, gateway, listener, time, disk] = await Promise.all([
    observe(clock, READ_MS, () => tablesOf(config)),
    readDatabaseFacts(clock, databaseLocation(config), databaseBackupsOf(config)),
    observe(clock, READ_MS, async () => {
      const path = centralSeedFile(config);
      if (!existsSync(path)) return null;
      return (await openKey({ kind: 'seed', path }, null)).hotkey;
    }),
    observe(clock, READ_MS, async () => {
      return readCentralSecret(centralSecretFile(config))?.length ?? null;
    }),
    observeHotkey({ clock, baseUrl, transport: gatewayTransport(config, clock), timeoutMs }),
    observeHotkey({
      clock,
      baseUrl: `http://${own}/api`,
      transport: PLAIN_TRANSPORT,
      timeoutMs,
    }),
    readClockFacts({ clock, runCommand, timeFrom: null, home: config.CENTRAL_HOME }),
    readDiskUse({ clock, runCommand, path: nearestFolder(config.CENTRAL_HOME) }),
  ]);
  return { config, database, databaseFile, key, secret, gateway, listener, time, disk };
}

export function databaseLocation(config: CentralConfig): DatabaseLocation {
  return { address: centralDatabaseOf(config), variable: 'CENTRAL_DATABASE', kind: 'central' };
}

/** Returns null if there is no database yet. */
export function tablesOf(config: CentralConfig): Promise<readonly RowCount[] | null> {
  const address = centralDatabaseOf(config);
  // Opening a SQLite file would create it.
  if (!isPostgresAddress(address) && !existsSync(address)) return Promise.resolve(null);
  return readCentralDatabase({ address, variable: 'CENTRAL_DATABASE' }, countRows);
}
