/** Bytes by which the database grows for one running pod and day, on SQLite and PostgreSQL, with the real job. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { openSqlite } from '#shared/runtime/sqlite.ts';
import { openCentralDatabase } from '../../validator/central/platform/database/database.ts';
import type { Database } from '../../validator/central/platform/database/tables.ts';
import { createDatabaseIn, startPostgresServer } from '../fakes/external/postgres-server.ts';
import { createTestMarket } from '../fakes/scenes/market-fixture.ts';
import { figureAtMost, type Row } from '../measure/row.ts';

/** Number of pods, so that the size of a page matters little; each has its own account. */
const PODS = 20;
const CREDIT_UUSD = 10_000_000_000;
const TICK_MS = 60_000;
const DAY_MS = 86_400_000;
const BYTES_PER_KB = 1_000;
const LIMIT_KB = 60;

type Measure = { open(): Promise<Database>; bytes(): Promise<number> };

export async function ledgerGrowth(): Promise<Row[]> {
  return [await onSqlite(), await onPostgres()];
}

async function onSqlite(): Promise<Row> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-bench-'));
  const file = join(folder, 'central.db');
  try {
    return await grown('ledger growth of one pod and day, SQLite', {
      open: () => openCentralDatabase(file),
      async bytes() {
        const side = openSqlite(file);
        const row = side.prepare(
          'select page_count * page_size as bytes from pragma_page_count, pragma_page_size',
        );
        const { bytes } = row.get() as { bytes: number };
        side.close();
        return bytes;
      },
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function onPostgres(): Promise<Row> {
  const server = await startPostgresServer({ keepsCommits: true });
  process.once('exit', server.removeNow);
  try {
    const url = await createDatabaseIn(server.folder, 'ledger_growth');
    return await grown('ledger growth of one pod and day, PostgreSQL', {
      open: () => openCentralDatabase(url),
      async bytes() {
        const client = new Client({ connectionString: url });
        await client.connect();
        // Also removes the old versions of updated rows, as autovacuum does in a day.
        await client.query('vacuum full');
        const { rows } = await client.query('select pg_database_size(current_database()) as bytes');
        await client.end();
        return Number(rows[0].bytes);
      },
    });
  } finally {
    await server.remove();
  }
}

/** Runs pods for a day, with contact and a metering tick every minute. */
async function grown(name: string, { open, bytes }: Measure): Promise<Row> {
  const db = await open();
  const market = await createTestMarket({ db, signupCreditUusd: CREDIT_UUSD });
  const { central, clock } = market;
  for (let count = 0; count < PODS; count += 1) {
    const node = await market.verifiedNode({ gpus: 1 });
    const rented = await market.rent(await market.renter(), node.id, { gpu_count: 1 });
    if (rented.status !== 200) throw new Error(JSON.stringify(rented.body));
  }
  await market.sync();
  const minute = async () => {
    await clock.advance(TICK_MS);
    const seen = { seen_at: clock.now(), healthy_at: clock.now() };
    await db.updateTable('pods').set(seen).where('state', '=', 'running').execute();
    await central.meterPods();
  };
  await minute();
  const before = await bytes();
  for (let ms = 0; ms < DAY_MS; ms += TICK_MS) await minute();
  const after = await bytes();
  const running = await db.selectFrom('pods').select('id').where('state', '=', 'running').execute();
  if (running.length !== PODS) throw new Error(`${running.length} of ${PODS} pods ran all day`);
  await market.close();
  return figureAtMost(name, (after - before) / PODS / BYTES_PER_KB, 'KB', LIMIT_KB);
}
