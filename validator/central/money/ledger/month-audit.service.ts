/**
 * Adds all transfers of the ledger to an audit, months first: archived months from their files, later ones from the
 * database. Compares closed months with their entries (I19).
 */
import { messageOf } from '#shared/runtime/errors.ts';
import type { Db, LedgerArchive, LedgerMonth } from '../../platform/database/tables.ts';
import { fileIn } from './archive.service.ts';
import { listArchives } from './archive.store.ts';
import { readArchive } from './archive-file.ts';
import { type CausedTransfer, transfersAfter } from './audit.store.ts';
import type { Audit, Finding } from './audit.ts';
import { transferLine, transferOf } from './export-line.ts';
import { listMonthBalances, listMonths, listOpenAt } from './month.store.ts';
import { chainHash, createMonthDigest, type MonthSums } from './month-digest.ts';

const RULE = 'I19';

type Auditing = { audit: Audit; find(finding: Finding): void; folder: string | null };

/** Returns the number of transfers. `db` must be one snapshot. */
export async function addAllMonths(db: Db, auditing: Auditing): Promise<number> {
  const months = await listMonths(db);
  checkChain(months, auditing.find);
  const archives = await listArchives(db);
  let transfers = 0;
  for (const archive of archives) {
    const month = months.find((row) => row.month === archive.month);
    if (month !== undefined) transfers += await addArchived(db, archive, month, auditing);
  }
  const inDatabase = months.slice(archives.length);
  return transfers + (await addStored(db, archives.at(-1)?.last_seq ?? 0, inDatabase, auditing));
}

function checkChain(months: readonly LedgerMonth[], find: Auditing['find']): void {
  let before: LedgerMonth | undefined;
  for (const month of months) {
    const isNext = month.first_seq === (before?.last_seq ?? 0) + 1;
    if (!isNext || chainHash(before?.chain_hash ?? null, month) !== month.chain_hash) {
      find({ rule: RULE, where: `month ${month.month}`, what: 'does not follow the month before' });
    }
    before = month;
  }
}

/** Adds a month from its file. After a damaged file, the audit continues with the recorded balances of the month. */
async function addArchived(
  db: Db,
  archive: LedgerArchive,
  month: LedgerMonth,
  { audit, find, folder }: Auditing,
): Promise<number> {
  const file = fileIn(archive, folder);
  const digest = createMonthDigest();
  const kept = transfersAfter(db, month.first_seq - 1);
  let row = await nextIn(kept, month);
  let problem: string | null = null;
  try {
    for await (const line of readArchive(file)) {
      digest.add(line);
      audit.add(transferOf(line));
      if (row?.seq !== line.seq) continue;
      if (JSON.stringify(transferLine(row)) !== JSON.stringify(line)) {
        const what = `differs from its line in ${file}`;
        find({ rule: RULE, where: `transfer ${row.seq}`, what });
      }
      row = await nextIn(kept, month);
    }
    if (!isSame(digest.sums(), month)) problem = `differs from the closed month ${month.month}`;
  } catch (error) {
    problem = `cannot be read: ${messageOf(error)}`;
  }
  if (problem !== null) {
    find({ rule: RULE, where: `archive ${file}`, what: problem });
    const balances = await listMonthBalances(db, month.month);
    audit.resume(month.last_seq, balances, await listOpenAt(db, month.last_seq));
    return month.transfers;
  }
  if (row !== null) {
    find({ rule: RULE, where: `transfer ${row.seq}`, what: `is missing in ${file}` });
  }
  checkBalances(month, audit, find);
  return month.transfers;
}

/** The next transfer of a month that is still in the database; null after the last. */
async function nextIn(
  rows: AsyncGenerator<CausedTransfer>,
  month: LedgerMonth,
): Promise<CausedTransfer | null> {
  const next = await rows.next();
  return next.done === true || next.value.seq > month.last_seq ? null : next.value;
}

/** Adds the transfers of the database after `from`, and compares the closed months among them. */
async function addStored(
  db: Db,
  from: number,
  months: readonly LedgerMonth[],
  { audit, find }: Auditing,
): Promise<number> {
  const open = [...months];
  let digest = createMonthDigest();
  let transfers = 0;
  const closeUntil = (seq: number) => {
    for (let month = open[0]; month !== undefined && month.last_seq < seq; month = open[0]) {
      if (!isSame(digest.sums(), month)) {
        const what = 'differs from the sums with which it was closed';
        find({ rule: RULE, where: `month ${month.month}`, what });
      }
      checkBalances(month, audit, find);
      digest = createMonthDigest();
      open.shift();
    }
  };
  for await (const transfer of transfersAfter(db, from)) {
    closeUntil(transfer.seq);
    audit.add(transfer);
    if (open.length > 0) digest.add(transferLine(transfer));
    transfers += 1;
  }
  closeUntil(Number.POSITIVE_INFINITY);
  return transfers;
}

function isSame(sums: MonthSums, month: LedgerMonth): boolean {
  const { transfers, amount_uusd: amount, rows_hash: hash } = sums;
  return transfers === month.transfers && amount === month.amount_uusd && hash === month.rows_hash;
}

function checkBalances(month: LedgerMonth, audit: Audit, find: Auditing['find']): void {
  if (audit.hash() === month.balance_hash) return;
  const what = 'results in other balances than those with which it was closed';
  find({ rule: RULE, where: `month ${month.month}`, what });
}
