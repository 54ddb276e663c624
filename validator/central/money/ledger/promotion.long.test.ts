/** The ledger while its PostgreSQL server ends and a standby is promoted at the same address. */
import { mkdtempSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { expect, it } from 'vitest';
import { OverloadError } from '#shared/runtime/errors.ts';
import { eventually } from '../../../../test/fakes/eventually.ts';
import {
  createDatabaseIn,
  type PostgresServer,
  postgresUrl,
  startPostgresServer,
} from '../../../../test/fakes/external/postgres-server.ts';
import { testCause } from '../../../../test/fakes/scenes/wallet.ts';
import { openCentralDatabase } from '../../platform/database/database.ts';
import type { Database } from '../../platform/database/tables.ts';
import { auditLedger } from './audit.service.ts';
import { postGroup } from './ledger.service.ts';
import { paidAccount } from './wallet.service.ts';

const WRITERS = 4;

async function execute(folder: string, statement: string): Promise<unknown[]> {
  const client = new Client({ connectionString: postgresUrl(folder, 'postgres') });
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}

/** A primary with a standby, and a database behind an address that can be moved from one to the other. */
async function setUp({ isSynchronous }: { isSynchronous: boolean }) {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-promotion-'));
  const address = join(folder, 'server');
  const servers: PostgresServer[] = [];
  let db: Database | null = null;

  async function close(): Promise<void> {
    await db?.destroy();
    for (const server of servers) await server.remove();
    rmSync(folder, { recursive: true });
  }

  try {
    const primary = await startPostgresServer({ keepsCommits: true });
    servers.push(primary);
    const standby = await startPostgresServer({ keepsCommits: true, primary: primary.folder });
    servers.push(standby);
    if (isSynchronous) {
      await execute(primary.folder, "alter system set synchronous_standby_names = '*'");
      await execute(primary.folder, 'select pg_reload_conf()');
      await eventually('a synchronous standby', async () => {
        const rows = await execute(primary.folder, 'select sync_state from pg_stat_replication');
        return JSON.stringify(rows).includes('sync"');
      });
    }
    symlinkSync(primary.folder, address);
    await createDatabaseIn(address, 'central');
    db = await openCentralDatabase(postgresUrl(address, 'central'));
    return {
      db,
      primary,
      standby,
      /** Promotes the standby and moves the address to it. */
      async promote(): Promise<void> {
        await execute(standby.folder, 'select pg_promote()');
        symlinkSync(standby.folder, `${address}.new`);
        renameSync(`${address}.new`, address);
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Commits one payment. Returns its id once the server has acknowledged it. */
function post(db: Database): Promise<string> {
  return db.transaction().execute(async (tx) => {
    const account = paidAccount('renter');
    const leg = { debit: 'external:topup', credit: account, amountUusd: 1 } as const;
    return String(await postGroup(tx, [leg], testCause()));
  });
}

/** Returns those of `ids` that the database does not have. */
async function missingOf(db: Database, ids: readonly string[]): Promise<string[]> {
  const rows = await db.selectFrom('ledger_groups').select('id').execute();
  const found = new Set(rows.map(({ id }) => String(id)));
  return ids.filter((id) => !found.has(id));
}

const findings = async (db: Database) => (await db.transaction().execute(auditLedger)).findings;

it('keeps every acknowledged transfer when a synchronous standby is promoted, and goes on', async () => {
  const scene = await setUp({ isSynchronous: true });
  try {
    const acknowledged: string[] = [];
    const refused: unknown[] = [];
    let isOver = false;
    const writers = Array.from({ length: WRITERS }, async () => {
      while (!isOver) {
        await post(scene.db).then(
          (id) => acknowledged.push(id),
          (error) => refused.push(error),
        );
      }
    });
    await eventually('some transfers', () => acknowledged.length > 100);
    await scene.primary.kill();
    const before = [...acknowledged];
    await scene.promote();
    await eventually('further transfers', () => acknowledged.length > before.length + 20);
    isOver = true;
    await Promise.all(writers);
    expect(await missingOf(scene.db, acknowledged)).toEqual([]);
    expect(new Set(acknowledged).size).toBe(acknowledged.length);
    expect(refused.filter((error) => !(error instanceof OverloadError))).toEqual([]);
    expect(await findings(scene.db)).toEqual([]);
  } finally {
    await scene.close();
  }
});

it('does not acknowledge a transfer that the synchronous standby does not confirm', async () => {
  const scene = await setUp({ isSynchronous: true });
  try {
    await post(scene.db);
    await scene.standby.kill();
    const waiting = [post(scene.db), post(scene.db)];
    for (const end of await Promise.allSettled(waiting)) {
      expect(end).toMatchObject({ reason: expect.any(OverloadError) });
    }
    await scene.standby.start();
    await eventually('the next transfer', () => post(scene.db).catch(() => false));
    expect(await findings(scene.db)).toEqual([]);
  } finally {
    await scene.close();
  }
});

it('lacks the newest transfers, but no part of one, when an asynchronous standby is promoted', async () => {
  const scene = await setUp({ isSynchronous: false });
  try {
    const kept = [await post(scene.db)];
    await eventually('the copy', async () => {
      const sent = await execute(
        scene.primary.folder,
        'select 1 from pg_stat_replication where replay_lsn = pg_current_wal_lsn()',
      );
      return sent.length > 0;
    });
    await scene.standby.kill();
    const lost = [await post(scene.db), await post(scene.db)];
    await scene.primary.kill();
    await scene.standby.start();
    await scene.promote();
    await eventually('the new server', () => post(scene.db).catch(() => false));
    expect(await missingOf(scene.db, kept)).toEqual([]);
    expect(await missingOf(scene.db, lost)).not.toEqual([]);
    expect(await findings(scene.db)).toEqual([]);
  } finally {
    await scene.close();
  }
});
