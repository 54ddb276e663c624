/**
 * Cost of the money ledger: reading a balance compared with the bare SQL statement, postings in batches of a thousand,
 * and an audit.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { openSqlite } from '#shared/runtime/sqlite.ts';
import { auditLedger } from '../../validator/central/money/ledger/audit.service.ts';
import { postGroups } from '../../validator/central/money/ledger/ledger.service.ts';
import { paidAccount, walletOf } from '../../validator/central/money/ledger/wallet.service.ts';
import {
  openCentralDatabase,
  readCentralDatabase,
} from '../../validator/central/platform/database/database.ts';
import type { Database } from '../../validator/central/platform/database/tables.ts';
import { addLedgerRows } from '../fakes/scenes/ledger-rows.ts';
import { testCause } from '../fakes/scenes/wallet.ts';
import { median, type Row, ratioAtLeast, ratioAtMost } from '../measure/row.ts';
import { changesOf, copyOf, writeBare } from './bare-writes.ts';

/** Number of rounds: many short ones, so that other load on the host affects both sides alike. */
const ROUNDS = 100;
const READS = 1_000;
const RENTERS = 1_000;
const FUNDS_UUSD = 1_000_000_000;
const AT_ONCE = 1_000;
const BATCHES = 20;
const MOST_RATIO = 2;
const LEAST_SHARE = 0.5;
const MS_PER_SECOND = 1_000;
const AUDITED = 1_000_000;
const MAX_AUDIT_RATIO = 3;
/** Transfers with the columns of their groups, as an audit reads them. */
const BARE_READ = `select transfers.*, cause_type, cause_id, actor, request_id, at_ms
  from transfers join ledger_groups on ledger_groups.id = group_id order by seq`;
const US_PER_MS = 1_000;
/** Statement with which the ledger reads a balance. */
const RAW =
  'select id, debits_posted, credits_posted, debits_pending from ledger_accounts where id in (?, ?)';

const renter = (index: number) => `renter-${index % RENTERS}`;

/** Measures the money ledger on SQLite, with every commit synced to disk. */
export async function ledgerCosts(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-bench-'));
  const file = join(folder, 'central.db');
  try {
    const db = await openCentralDatabase(file);
    try {
      await fund(db);
      return [await balanceRead(db, file), await postings(file, folder), await audit(folder)];
    } finally {
      await db.destroy();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function fund(db: Database): Promise<void> {
  const groups = Array.from({ length: RENTERS }, (_, index) => ({
    legs: [
      {
        debit: 'external:topup' as const,
        credit: paidAccount(renter(index)),
        amountUusd: FUNDS_UUSD,
      },
    ],
    cause: testCause(),
  }));
  await db.transaction().execute((tx) => postGroups(tx, groups));
}

/** Microseconds per read. */
async function balanceRead(db: Database, file: string): Promise<Row> {
  const bare = openSqlite(file);
  const statement = bare.prepare(RAW);
  const reference: number[] = [];
  const ours: number[] = [];
  const each = (startMs: number) => ((systemClock.monotonicMs() - startMs) / READS) * US_PER_MS;
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      let startMs = systemClock.monotonicMs();
      for (let index = 0; index < READS; index += 1) {
        statement.all(paidAccount(renter(index)), `granted:${renter(index)}`);
      }
      reference.push(each(startMs));
      startMs = systemClock.monotonicMs();
      for (let index = 0; index < READS; index += 1) await walletOf(db, renter(index));
      ours.push(each(startMs));
    }
  } finally {
    bare.close();
  }
  const figures = { ours: median(ours), reference: median(reference) };
  return ratioAtMost('balance read', 'us', 'the bare statement', figures, MOST_RATIO);
}

/**
 * Groups per second, a thousand in one transaction; compared with the same rows written in as many commits. The sides
 * alternate, so that load on the host affects both alike.
 */
async function postings(file: string, folder: string): Promise<Row> {
  const copy = (name: string) => copyOf(file, join(folder, name));
  const [recorded, ours, reference] = [copy('recorded'), copy('ours'), copy('reference')];
  try {
    const batches = Array.from({ length: BATCHES }, groupsOfBatch);
    const post = (groups: Batch) => (db: Database) =>
      db.transaction().execute((tx) => postGroups(tx, groups));
    const changes = await changesOf(recorded, batches.map(post));
    const took = { ours: 0, reference: 0 };
    for (const [index, groups] of batches.entries()) {
      let beganMs = systemClock.monotonicMs();
      await post(groups)(ours.db);
      took.ours += systemClock.monotonicMs() - beganMs;
      beganMs = systemClock.monotonicMs();
      writeBare(reference, changes[index] ?? new Uint8Array());
      took.reference += systemClock.monotonicMs() - beganMs;
    }
    const rate = (ms: number) => (BATCHES * AT_ONCE * MS_PER_SECOND) / ms;
    const rates = { ours: rate(took.ours), reference: rate(took.reference) };
    const against = 'the same rows and commits';
    return ratioAtLeast('postings by the thousand', '/s', against, rates, LEAST_SHARE);
  } finally {
    for (const each of [recorded, ours, reference]) await each.db.destroy();
  }
}

type Batch = ReturnType<typeof groupsOfBatch>;

function groupsOfBatch() {
  return Array.from({ length: AT_ONCE }, (_, index) => ({
    legs: [
      { debit: paidAccount(renter(index)), credit: 'clearing:usage' as const, amountUusd: 100 },
      { debit: 'clearing:usage' as const, credit: 'provider:p' as const, amountUusd: 95 },
      { debit: 'clearing:usage' as const, credit: 'platform:fee' as const, amountUusd: 5 },
    ],
    cause: testCause(),
  }));
}

/** Seconds of an audit of many transfers, compared with a bare read of the same rows. */
async function audit(folder: string): Promise<Row> {
  const file = join(folder, 'audited.db');
  await (await openCentralDatabase(file)).destroy();
  addLedgerRows(file, AUDITED);
  const bare = openSqlite(file);
  let beganMs = systemClock.monotonicMs();
  let rows = 0;
  for (const _ of bare.prepare(BARE_READ).iterate()) rows += 1;
  const reference = (systemClock.monotonicMs() - beganMs) / MS_PER_SECOND;
  bare.close();
  const place = { address: file, variable: 'bench' };
  beganMs = systemClock.monotonicMs();
  const { transfers, findings } = await readCentralDatabase(place, (copy) => auditLedger(copy));
  const ours = (systemClock.monotonicMs() - beganMs) / MS_PER_SECOND;
  if (transfers !== rows || findings.length > 0) throw new Error(JSON.stringify(findings[0]));
  const name = `ledger verify of ${AUDITED} transfers`;
  const against = 'a bare read of the same rows';
  return ratioAtMost(name, 's', against, { ours, reference }, MAX_AUDIT_RATIO);
}
