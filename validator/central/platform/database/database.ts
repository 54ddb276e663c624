/** Opens the central API's database and brings its schema up to date. */
import { existsSync } from 'node:fs';
import { sql } from 'kysely';
import { ConfigError } from '#shared/runtime/config.ts';
import { isPostgres } from '../../../database/engine.ts';
import {
  type DatabaseTarget,
  isPostgresAddress,
  markCreated,
  openDatabase,
} from '../../../database/open-database.ts';
import { beginMigration, type DatabaseLocation } from '../../../database/ownership.ts';
import type { CentralPlace } from '../central-home.ts';
import { foundation } from './migrations/0001-foundation.ts';
import { notebooks } from './migrations/0002-notebooks.ts';
import { podChanges } from './migrations/0003-pod-changes.ts';
import { dockerCredentials } from './migrations/0004-docker-credentials.ts';
import { processes } from './migrations/0005-processes.ts';
import { accountsWhole } from './migrations/0006-accounts.ts';
import { marketFigures } from './migrations/0007-market-figures.ts';
import { nodeNotes } from './migrations/0008-node-notes.ts';
import { marketRevisions } from './migrations/0009-market-revisions.ts';
import { podStory } from './migrations/0010-pod-story.ts';
import { pledges } from './migrations/0011-pledges.ts';
import { streams } from './migrations/0012-streams.ts';
import { launchEstimates } from './migrations/0013-launch-estimates.ts';
import { podImages } from './migrations/0014-pod-images.ts';
import { backups } from './migrations/0015-backups.ts';
import { volumeEncryption } from './migrations/0016-volume-encryption.ts';
import { feedIndexes } from './migrations/0017-feed-indexes.ts';
import { backupDrills } from './migrations/0018-backup-drills.ts';
import { setWeights } from './migrations/0019-set-weights.ts';
import { volumes } from './migrations/0020-volumes.ts';
import { lines } from './migrations/0021-lines.ts';
import { ledger } from './migrations/0022-ledger.ts';
import { metering } from './migrations/0023-metering.ts';
import { schedule } from './migrations/0024-schedule.ts';
import { notices } from './migrations/0025-notices.ts';
import { portal } from './migrations/0026-portal.ts';
import { aroundBalance } from './migrations/0027-around-balance.ts';
import { webhooks } from './migrations/0028-webhooks.ts';
import { validatorAccounts } from './migrations/0029-validator-accounts.ts';
import { payouts } from './migrations/0030-payouts.ts';
import { referrals } from './migrations/0031-referrals.ts';
import { podIdle } from './migrations/0032-pod-idle.ts';
import { changedLimits } from './migrations/0034-changed-limits.ts';
import { replacedSecrets } from './migrations/0035-replaced-secrets.ts';
import { notedSegments } from './migrations/0036-noted-segments.ts';
import { clientFields } from './migrations/0037-client-fields.ts';
import { payoutAccounts } from './migrations/0038-payout-accounts.ts';
import { changedFiles } from './migrations/0039-changed-files.ts';
import { places } from './migrations/0040-places.ts';
import { collateral } from './migrations/0041-collateral.ts';
import { reliability } from './migrations/0042-reliability.ts';
import { launchLimit } from './migrations/0043-launch-limit.ts';
import { metricHistory } from './migrations/0044-metric-history.ts';
import { apiKeyLimits } from './migrations/0045-api-key-limits.ts';
import { secrets } from './migrations/0046-secrets.ts';
import { audit } from './migrations/0047-audit.ts';
import { sshHostKey } from './migrations/0049-ssh-host-key.ts';
import { operators } from './migrations/0050-operators.ts';
import { operatorRecords } from './migrations/0051-operator-records.ts';
import { runningTime } from './migrations/0052-running-time.ts';
import { damagedBackups } from './migrations/0053-damaged-backups.ts';
import { pendingEmail } from './migrations/0054-pending-email.ts';
import { unknownPods } from './migrations/0055-unknown-pods.ts';
import { paidFees } from './migrations/0056-paid-fees.ts';
import { podReports } from './migrations/0058-pod-reports.ts';
import { syncQueue } from './migrations/0059-sync-queue.ts';
import { hourlyPostings } from './migrations/0060-hourly-postings.ts';
import { ledgerMonths } from './migrations/0061-ledger-months.ts';
import { nodeSurvey } from './migrations/0063-node-survey.ts';
import { metricCollections } from './migrations/0064-metric-collections.ts';
import { logInTickets } from './migrations/0066-log-in-tickets.ts';
import { sessionsAndChecks } from './migrations/0067-sessions-and-checks.ts';
import { earningsByNode } from './migrations/0068-earnings-by-node.ts';
import { POSTGRES_DIALECT, SQLITE_DIALECT, type SqlDialect } from './sql-dialects.ts';
import type { Database, Db, Tables } from './tables.ts';

/** Migrations in their order: the position of a migration is its schema number. Never edit a released migration. */
const MIGRATIONS: readonly ((dialect: SqlDialect) => string[])[] = [
  foundation,
  notebooks,
  podChanges,
  dockerCredentials,
  processes,
  accountsWhole,
  marketFigures,
  nodeNotes,
  marketRevisions,
  podStory,
  pledges,
  streams,
  launchEstimates,
  podImages,
  backups,
  volumeEncryption,
  feedIndexes,
  backupDrills,
  setWeights,
  volumes,
  lines,
  ledger,
  metering,
  schedule,
  notices,
  portal,
  aroundBalance,
  webhooks,
  validatorAccounts,
  payouts,
  referrals,
  podIdle,
  changedLimits,
  replacedSecrets,
  notedSegments,
  clientFields,
  payoutAccounts,
  changedFiles,
  places,
  collateral,
  reliability,
  launchLimit,
  metricHistory,
  apiKeyLimits,
  secrets,
  audit,
  sshHostKey,
  operators,
  operatorRecords,
  runningTime,
  damagedBackups,
  pendingEmail,
  unknownPods,
  paidFees,
  podReports,
  syncQueue,
  hourlyPostings,
  ledgerMonths,
  nodeSurvey,
  metricCollections,
  logInTickets,
  sessionsAndChecks,
  earningsByNode,
];

/** Schema number of this program. */
export const SCHEMA = MIGRATIONS.length;

const KNOWN_AS = {
  applicationName: 'podwright-central',
  kind: 'central',
} as const;

/**
 * Opens the database at `target`: `postgres://…`, a SQLite file, `:memory:` or `:temporary:`. The caller must call
 * `destroy()`. Rejects as `openDatabase` does, and with a ConfigError if a newer version has written the database.
 */
export async function openCentralDatabase(
  target: string,
  variable = 'CENTRAL_DATABASE',
  options: Pick<DatabaseTarget, 'damage' | 'limits' | 'through'> = {},
): Promise<Database> {
  const place = { address: target, variable, ...KNOWN_AS };
  const db = await openDatabase<Tables>({ ...place, ...options });
  try {
    await migrate(db, place);
    markCreated(place);
    return db;
  } catch (error) {
    await db.destroy();
    throw error;
  }
}

async function migrate(db: Database, place: DatabaseLocation): Promise<void> {
  const dialect = isPostgres(db) ? POSTGRES_DIALECT : SQLITE_DIALECT;
  await db.transaction().execute(async (tx) => {
    await beginMigration(tx, place);
    await sql
      .raw(
        `create table if not exists meta (name text primary key, value text not null) ${dialect.tableEnd}`,
      )
      .execute(tx);
    const present = await schemaOf(tx);
    if (present > SCHEMA) {
      throw new ConfigError(
        `the database has schema ${present}, this program supports ${SCHEMA}: run a newer version`,
      );
    }
    for (const migration of MIGRATIONS.slice(present)) {
      for (const statement of migration(dialect)) await sql.raw(statement).execute(tx);
    }
    await tx
      .insertInto('meta')
      .values({ name: 'schema', value: String(SCHEMA) })
      .onConflict((conflict) => conflict.column('name').doUpdateSet({ value: String(SCHEMA) }))
      .execute();
  });
}

/** Returns the schema number stored in the database; 0 if it is empty. */
export async function schemaOf(db: Db): Promise<number> {
  const row = await db
    .selectFrom('meta')
    .select('value')
    .where('name', '=', 'schema')
    .executeTakeFirst();
  return Number(row?.value ?? 0);
}

/**
 * Runs `work` on a read-only snapshot of the database, also while a central API writes to it. Rejects with a
 * ConfigError if there is no database with this schema.
 */
export function readCentralDatabase<T>(
  place: CentralPlace,
  work: (db: Db) => Promise<T>,
): Promise<T> {
  return besideCentral({ ...place, readOnly: true }, (db) =>
    db.connection().execute(async (reader) => {
      const begin = isPostgres(db)
        ? 'begin isolation level repeatable read read only'
        : 'begin deferred';
      await sql.raw(begin).execute(reader);
      return work(reader);
    }),
  );
}

/** Runs `work` on the database, also while a central API uses the database. Rejects as `readCentralDatabase` does. */
export async function besideCentral<T>(
  place: CentralPlace & Pick<DatabaseTarget, 'readOnly'>,
  work: (db: Database) => Promise<T>,
): Promise<T> {
  const { address } = place;
  if (!isPostgresAddress(address) && !existsSync(address)) {
    throw new ConfigError(
      `there is no database of a central API at ${address}: pass --database FILE (with npm start: var/central.db)`,
    );
  }
  const db = await openDatabase<Tables>({ ...place, ...KNOWN_AS, mustExist: true });
  try {
    await requireSchema(db);
    return await work(db);
  } finally {
    await db.destroy();
  }
}

/** Rejects with a ConfigError if the schema is not that of this program. */
export async function requireSchema(db: Db): Promise<void> {
  const present = await schemaOf(db);
  if (present === SCHEMA) return;
  const remedy =
    present > SCHEMA
      ? 'run a newer version'
      : 'to migrate it, start a central API of this version on the database or on a copy';
  throw new ConfigError(
    `the database has schema ${present}, this program reads ${SCHEMA}: ${remedy}`,
  );
}
