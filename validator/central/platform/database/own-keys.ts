/**
 * Keys that belong to a database: its secret (sealed-columns.ts) and the hotkey with which its central API signs
 * commands. All processes on a database use the same keys.
 */
import { existsSync } from 'node:fs';
import { ConfigError } from '#shared/runtime/config.ts';
import { needsRollback } from '#shared/runtime/sqlite.ts';
import type { Hotkey } from '#shared/signing/hotkey.ts';
import { isPostgresAddress, openDatabase } from '../../../database/open-database.ts';
import { tablesIn } from '../../../database/ownership.ts';
import type { CentralPlace } from '../central-home.ts';
import { SECRET_PROOF } from './sealed-columns.ts';
import type { Db, Tables } from './tables.ts';

/** Row of the table `meta` with the ss58 hotkey of the central API. */
const HOTKEY = 'hotkey';

/**
 * Rejects with ConfigError if another hotkey has used the database, because gateways and agents accept the commands of
 * one hotkey only. The first start records the hotkey; `isNew` replaces the recorded one.
 */
export async function requireOwnHotkey(
  db: Db,
  hotkey: Hotkey,
  { isNew }: { isNew: boolean },
): Promise<void> {
  await db
    .insertInto('meta')
    .values({ name: HOTKEY, value: hotkey })
    .onConflict((conflict) =>
      isNew
        ? conflict.column('name').doUpdateSet({ value: hotkey })
        : conflict.column('name').doNothing(),
    )
    .execute();
  const recorded = await recordedValue(db, HOTKEY);
  if (recorded === hotkey) return;
  throw new ConfigError(
    `the key of CENTRAL_SEED_FILE has the hotkey ${hotkey}, but this database is used with ${recorded}, the only ` +
      'hotkey whose commands gateways and agents accept: copy the seed file of the other processes. ' +
      'To change the hotkey, stop all processes and start once with --fresh; then set VALIDATOR_CENTRAL_HOTKEY of the validators',
  );
}

/** Files of the keys; they may be absent. */
export type KeyFiles = { seed: string; secret: string };

/**
 * Rejects with ConfigError if a file is missing although the database is used with such a key, and as `openDatabase`
 * does. Call it before missing files are created: a refused start then leaves no key that belongs to no database.
 * `isNew` accepts a missing seed.
 */
export async function requireRecordedKeys(
  place: CentralPlace,
  { seed, secret }: KeyFiles,
  { isNew }: { isNew: boolean },
): Promise<void> {
  if (existsSync(seed) && existsSync(secret)) return;
  const recorded = await recordedKeys(place);
  if (recorded.hasSecret && !existsSync(secret)) throw missing(secret, 'CENTRAL_SECRET_FILE');
  if (recorded.hasHotkey && !existsSync(seed) && !isNew) throw missing(seed, 'CENTRAL_SEED_FILE');
}

function missing(path: string, variable: string): ConfigError {
  return new ConfigError(
    `${path} is missing, but this database is already used with such a key: ` +
      `copy the file of the process that uses the database, or name the file with ${variable}`,
  );
}

async function recordedKeys(place: CentralPlace) {
  const none = { hasSecret: false, hasHotkey: false };
  if (!isPostgresAddress(place.address) && !existsSync(place.address)) return none;
  const known = { applicationName: 'podwright-central', kind: 'central', readOnly: true } as const;
  try {
    const db = await openDatabase<Tables>({ ...place, ...known });
    try {
      if (!(await tablesIn(db)).includes('meta')) return none;
      return {
        hasSecret: (await recordedValue(db, SECRET_PROOF)) !== undefined,
        hasHotkey: (await recordedValue(db, HOTKEY)) !== undefined,
      };
    } finally {
      await db.destroy();
    }
  } catch (error) {
    // The first start was killed and left a journal, which the next start rolls back.
    if (error instanceof Error && needsRollback(error.cause)) return none;
    throw error;
  }
}

async function recordedValue(db: Db, name: string): Promise<string | undefined> {
  const query = db.selectFrom('meta').select('value').where('name', '=', name);
  return (await query.executeTakeFirst())?.value;
}
