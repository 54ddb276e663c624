/** kill -9 of a move at twelve points: the repeated move completes, and a central API then serves the copy. */
import { join } from 'node:path';
import { Client } from 'pg';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { auditLedger } from '../../validator/central/money/ledger/audit.service.ts';
import { openCentralDatabase } from '../../validator/central/platform/database/database.ts';
import { lockDatabaseFile } from '../../validator/database/open-database.ts';
import {
  type Moment,
  type PostgresProxy,
  startPostgresProxy,
} from '../fakes/faults/postgres-proxy.ts';
import { createEmptyPostgresDatabase } from '../fakes/scenes/central-database.ts';
import { type CentralProcess, startCentralProcess } from '../fakes/scenes/central-process.ts';
import { addLedgerRows } from '../fakes/scenes/ledger-rows.ts';
import { type AddedNode, DEFAULT_TEMPLATE } from '../fakes/scenes/market-fixture.ts';
import { startMoveProcess } from '../fakes/scenes/move-process.ts';
import { createServedMarket, type ServedMarket } from '../fakes/scenes/served-market.ts';

const TRANSFERS = 20_000;

/**
 * Messages of a connection, in this order; the process is killed at the last message. `start`: part of the message
 * of a process that then starts on the file.
 */
type Point = { name: string; messages: readonly string[]; at: Moment; start?: string };
const POINTS: readonly Point[] = [
  {
    name: 'before the tables exist',
    messages: ['create table accounts'],
    at: 'sent',
    start: 'starts',
  },
  {
    name: 'when the tables exist',
    messages: ['create table accounts', 'commit'],
    at: 'done',
    start: 'starts',
  },
  { name: 'before the mark of the target', messages: ['insert into "database_move"'], at: 'sent' },
  {
    name: 'after the mark of the target',
    messages: ['insert into "database_move"', 'commit'],
    at: 'done',
  },
  { name: 'before the first rows of a table', messages: ['insert into "transfers"'], at: 'sent' },
  {
    name: 'after rows, before their progress',
    messages: ['insert into "transfers"', 'update "database_move"'],
    at: 'sent',
  },
  {
    name: 'before a commit',
    messages: ['insert into "transfers"', 'update "database_move"', 'commit'],
    at: 'sent',
  },
  {
    name: 'after a commit',
    messages: ['insert into "transfers"', 'update "database_move"', 'commit'],
    at: 'done',
  },
  { name: 'while the sequences are set', messages: ['setval'], at: 'done' },
  { name: 'during the comparison', messages: ['declare moved', 'fetch'], at: 'done' },
  {
    name: 'when the file is marked as moved, and the target is not complete',
    messages: ['"state":"done"'],
    at: 'sent',
    start: 'was moved to',
  },
  {
    name: 'when the move is complete, before its result is printed',
    messages: ['"state":"done"'],
    at: 'done',
    start: 'was moved to',
  },
];

let market: ServedMarket<AddedNode[]>;
let proxy: PostgresProxy;
let file: string;
let url: string;
let central: CentralProcess;

beforeAll(async () => {
  market = await createServedMarket(
    (folder) => join(folder, 'central.db'),
    async ({ verifiedNode }) => [await verifiedNode({ gpus: 2 }), await verifiedNode({ gpus: 1 })],
  );
  file = market.environment.CENTRAL_DATABASE;
  await market.db.destroy();
  central = await startCentralProcess(market.environment);
  const [node] = market.nodes;
  const rented = await central.call('POST', `/executors/${node?.id}/rent`, {
    headers: market.account.key,
    body: { pod_name: 'mine', template_id: DEFAULT_TEMPLATE },
  });
  expect(rented.status).toBe(200);
  await central.end();
  addLedgerRows(file, TRANSFERS);
  url = await createEmptyPostgresDatabase();
  proxy = await startPostgresProxy(inject('centralDatabase'));
});

afterAll(async () => {
  await central?.end('SIGKILL');
  await market?.close();
  await proxy?.close();
});

async function killedAt({ messages, at }: Point): Promise<string> {
  const move = startMoveProcess(file, '--to', proxy.urlOf(url));
  const reached = new Map<object, number>();
  proxy.watch(async (sql, moment, connection) => {
    const next = reached.get(connection) ?? 0;
    const isLast = next === messages.length - 1;
    if (moment !== (isLast ? at : 'sent') || !sql.includes(messages[next] ?? ' ')) return;
    reached.set(connection, next + 1);
    if (!isLast) return;
    move.kill();
    await move.ended;
  });
  const { code, output } = await move.ended;
  proxy.watch(async () => undefined);
  return code === null ? 'killed' : output;
}

/** Locks the file as a starting process does. */
async function startOnFile(): Promise<string> {
  const location = { address: file, variable: 'CENTRAL_DATABASE', kind: 'central' } as const;
  return lockDatabaseFile(location).then(
    (lock) => {
      lock.close();
      return 'starts';
    },
    (error: Error) => error.message,
  );
}

async function counted(table: string): Promise<number> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return Number((await client.query(`select count(*) as n from ${table}`)).rows[0].n);
  } finally {
    await client.end();
  }
}

it.each(POINTS)('can continue after a kill $name', async (point) => {
  expect(await killedAt(point)).toBe('killed');
  expect(await startOnFile()).toContain(point.start ?? 'is not complete');
  if (point.name !== 'after a commit') return;
  await expect(openCentralDatabase(url)).rejects.toThrow('has an incomplete copy of');
  expect(await counted('transfers')).toBeGreaterThanOrEqual(5_000);
});

it('completes after all kills with the same ledger', async () => {
  const { code, output } = await startMoveProcess(file, '--to', url).ended;
  expect(output).toContain('was already copied');
  expect(code).toBe(0);

  const copy = await openCentralDatabase(url);
  const audit = await auditLedger(copy);
  expect(audit).toMatchObject({ findings: [] });
  expect(audit.transfers).toBeGreaterThan(TRANSFERS);
  await copy.destroy();
});

it('serves the copy with the keys of the home, and refuses the file', async () => {
  central = await startCentralProcess({ ...market.environment, CENTRAL_DATABASE: url });
  const pods = await central.call('GET', '/pods', { headers: market.account.key });
  expect(pods.body).toMatchObject([{ pod_name: 'mine' }]);
  const [, node] = market.nodes;
  const rented = await central.call('POST', `/executors/${node?.id}/rent`, {
    headers: market.account.key,
    body: { pod_name: 'second', template_id: DEFAULT_TEMPLATE },
  });
  expect(rented.status).toBe(200);
  await central.end();
  await expect(startCentralProcess(market.environment)).rejects.toThrow(
    `${file} was moved to the PostgreSQL database`,
  );
});
