/**
 * Cost of the money ledger: reading a balance compared with the bare SQL statement, and postings in batches of a
 * thousand.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '#shared/runtime/clock.ts';
import { openSqlite } from '#shared/runtime/sqlite.ts';
import { placeHold, settleHold } from '../../validator/central/money/ledger/hold.service.ts';
import { postGroup, postGroups } from '../../validator/central/money/ledger/ledger.service.ts';
import { paidAccount, walletOf } from '../../validator/central/money/ledger/wallet.service.ts';
import { openCentralDatabase } from '../../validator/central/platform/database/database.ts';
import type { Database } from '../../validator/central/platform/database/tables.ts';
import { testCause } from '../fakes/scenes/wallet.ts';
import { median, type Row, ratioAtMost, valueAtLeast } from '../measure/row.ts';

/** Number of rounds: many short ones, so that other load on the host affects both sides alike. */
const ROUNDS = 100;
const READS = 1_000;
const RENTERS = 1_000;
const FUNDS_UUSD = 1_000_000_000;
const AT_ONCE = 1_000;
const BATCHES = 20;
const MOST_RATIO = 2;
const LEAST_POSTINGS = 10_000;
const MS_PER_SECOND = 1_000;
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
      return [await balanceRead(db, file), await postings(db)];
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

/** Groups per second, a thousand in one transaction; compared with holds that are placed and settled one at a time. */
async function postings(db: Database): Promise<Row> {
  let startMs = systemClock.monotonicMs();
  const rate = (count: number) => count / ((systemClock.monotonicMs() - startMs) / MS_PER_SECOND);
  for (let batch = 0; batch < BATCHES; batch += 1) {
    const groups = Array.from({ length: AT_ONCE }, (_, index) => ({
      legs: [
        { debit: paidAccount(renter(index)), credit: 'clearing:usage' as const, amountUusd: 100 },
        { debit: 'clearing:usage' as const, credit: 'provider:p' as const, amountUusd: 95 },
        { debit: 'clearing:usage' as const, credit: 'platform:fee' as const, amountUusd: 5 },
      ],
      cause: testCause(),
    }));
    await db.transaction().execute((tx) => postGroups(tx, groups));
  }
  const ours = rate(BATCHES * AT_ONCE);
  startMs = systemClock.monotonicMs();
  for (let index = 0; index < AT_ONCE; index += 1) {
    const hold = await db
      .transaction()
      .execute((tx) => placeHold(tx, renter(index), 100, testCause()));
    await db.transaction().execute(async (tx) => {
      await settleHold(tx, hold, 50, testCause());
      const leg = { debit: 'clearing:usage', credit: 'platform:fee', amountUusd: 50 } as const;
      await postGroup(tx, [leg], testCause());
    });
  }
  const reference = rate(AT_ONCE);
  const against = 'holds placed and settled one by one';
  return valueAtLeast(
    'postings by the thousand',
    '/s',
    against,
    { ours, reference },
    LEAST_POSTINGS,
  );
}
