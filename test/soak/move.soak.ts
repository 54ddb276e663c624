/** A database with a million transfers is moved to PostgreSQL: with ten kills, and once without, beside a bare COPY. */
import { createHash } from 'node:crypto';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { systemClock } from '#shared/runtime/clock.ts';
import { openSqlite } from '#shared/runtime/sqlite.ts';
import { openCentralDatabase } from '../../validator/central/platform/database/database.ts';
import {
  createDatabaseIn,
  type PostgresServer,
  startPostgresServer,
} from '../fakes/external/postgres-server.ts';
import { startPostgresProxy } from '../fakes/faults/postgres-proxy.ts';
import { addLedgerRows } from '../fakes/scenes/ledger-rows.ts';
import { startMoveProcess } from '../fakes/scenes/move-process.ts';
import { figureAtMost, finding, type Row, ratioAtMost } from '../measure/row.ts';

const TRANSFERS = 1_000_000;
const KILLS = 10;
/** Saved batches before a kill. There are 400 batches of the ledger, so that the kills are spread over all of them. */
const BATCHES_A_KILL = 36;
/** Maximum ratio: the move also checks the file, reads both sides again, and audits both ledgers. */
const MAX_RATIO = 6;
const MS_PER_SECOND = 1_000;
const PAGE = 20_000;

/** The tables with all rows of the ledger, and their keys. */
const TABLES = { ledger_groups: 'id', transfers: 'seq', ledger_accounts: 'id' } as const;
type TableName = keyof typeof TABLES;

type Print = (line: string) => void;

export async function ledgerMove(print: Print): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-soak-'));
  const server = await startPostgresServer({ keepsCommits: true });
  try {
    const file = join(folder, 'killed.db');
    const whole = join(folder, 'whole.db');
    await (await openCentralDatabase(file)).destroy();
    addLedgerRows(file, TRANSFERS);
    copyFileSync(file, whole);
    print(`${TRANSFERS} transfers`);
    const killed = await createDatabaseIn(server.folder, 'killed');
    const kills = await moveWithKills(file, killed, server, print);
    const different = await differencesOf(file, killed);
    const url = await createDatabaseIn(server.folder, 'whole');
    const ours = await secondsOf(() => moveOnce(whole, url, print));
    const reference = await bareCopy(url, server);
    return [
      finding(
        'move of a million transfers: kills',
        kills,
        'kills',
        'the repeated move completes',
        true,
      ),
      figureAtMost(
        `tables whose count, balances or hash differ ${different}`.trim(),
        different.length,
        'tables',
        0,
      ),
      ratioAtMost(
        'move of a million transfers',
        's',
        'COPY of the same rows',
        { ours, reference },
        MAX_RATIO,
      ),
    ];
  } finally {
    await server.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Kills the move ten times after some saved batches, and then lets it complete. Returns the number of kills. */
async function moveWithKills(
  file: string,
  url: string,
  server: PostgresServer,
  print: Print,
): Promise<number> {
  const proxy = await startPostgresProxy(server.folder);
  let kills = 0;
  try {
    for (let round = 0; round < KILLS; round += 1) {
      const move = startMoveProcess(file, '--to', proxy.urlOf(url));
      let saved = 0;
      proxy.watch(async (sql, moment) => {
        if (moment === 'sent' && sql.includes('update "database_move"')) saved += 1;
        if (saved === BATCHES_A_KILL) move.kill();
      });
      const { code, output } = await move.ended;
      if (code !== null) throw new Error(`the move ended before it was killed: ${output}`);
      kills += 1;
    }
  } finally {
    await proxy.close();
  }
  await moveOnce(file, url, print);
  return kills;
}

async function moveOnce(file: string, url: string, print: Print): Promise<void> {
  const { code, output } = await startMoveProcess(file, '--to', url).ended;
  print(output.trim());
  if (code !== 0) throw new Error('the move failed');
}

async function secondsOf(work: () => Promise<void>): Promise<number> {
  const sinceMs = systemClock.monotonicMs();
  await work();
  return (systemClock.monotonicMs() - sinceMs) / MS_PER_SECOND;
}

/** Copies the rows of the ledger from files of the server to a new database with the same tables. Returns seconds. */
async function bareCopy(from: string, server: PostgresServer): Promise<number> {
  const url = await createDatabaseIn(server.folder, 'bare');
  await (await openCentralDatabase(url)).destroy();
  const fileOf = (name: string) => join(server.folder, `${name}.copy`);
  await onServer(from, async (client) => {
    for (const name of Object.keys(TABLES)) await client.query(`copy ${name} to '${fileOf(name)}'`);
  });
  return secondsOf(() =>
    onServer(url, async (client) => {
      for (const name of Object.keys(TABLES))
        await client.query(`copy ${name} from '${fileOf(name)}'`);
    }),
  );
}

async function onServer<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Names of the tables whose rows differ. Reads both sides in the order of the keys, unlike the move. */
async function differencesOf(file: string, url: string): Promise<string[]> {
  const database = openSqlite(file);
  const different: string[] = [];
  for (const name of Object.keys(TABLES) as TableName[]) {
    const ofFile = createHash('sha256');
    const all = database.prepare(`SELECT * FROM ${name} ORDER BY ${TABLES[name]}`);
    for (const row of all.iterate()) ofFile.update(textOf(row));
    const ofServer = await onServer(url, (client) => hashOnServer(client, name));
    if (ofFile.digest('hex') !== ofServer) different.push(name);
  }
  database.close();
  return different;
}

async function hashOnServer(client: Client, name: TableName): Promise<string> {
  const hash = createHash('sha256');
  await client.query('begin');
  const order = name === 'ledger_accounts' ? `${TABLES[name]} collate "C"` : TABLES[name];
  await client.query(`declare rows cursor for select * from ${name} order by ${order}`);
  for (;;) {
    const { rows } = await client.query<Record<string, unknown>>(`fetch ${PAGE} from rows`);
    if (rows.length === 0) return hash.digest('hex');
    for (const row of rows) hash.update(textOf(row));
  }
}

/** Values by column. pg returns whole numbers as text. */
function textOf(row: Record<string, unknown>): string {
  const columns = Object.entries(row).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(
    columns.map(([name, value]) => [name, value === null ? null : String(value)]),
  );
}
