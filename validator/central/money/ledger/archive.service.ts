/**
 * Moves closed months of the ledger to files. The rows of a month are deleted only after its file was read back and
 * has the sums and the hash of the closed month. A kill at any point leaves either all rows, or the verified file; the
 * next run continues.
 */
import { basename, join } from 'node:path';
import { type Clock, createEventLoopYield } from '#shared/runtime/clock.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Database, Db, LedgerArchive, LedgerMonth } from '../../platform/database/tables.ts';
import { moneyTransaction } from '../../platform/database/transactions.ts';
import { deleteArchived, insertArchive, listArchives } from './archive.store.ts';
import { archiveFile, readArchive, writeArchive } from './archive-file.ts';
import { transfersAfter } from './audit.store.ts';
import { type TransferLine, transferLine } from './export-line.ts';
import { listMonths } from './month.store.ts';
import { createMonthDigest } from './month-digest.ts';

/** Number of groups that one transaction deletes. */
const GROUPS_PER_BATCH = 200;

export type ArchiveDeps = { db: Database; clock: Clock; random: Random };

/**
 * Archives a closed month in `folder`, or continues an archiving that was interrupted, and returns its record. Throws
 * ConfigError for a month that is not closed or not the next one, and for a file that differs from the month.
 */
export async function archiveMonth(
  deps: ArchiveDeps,
  month: string,
  folder: string,
): Promise<LedgerArchive> {
  const archive = await recordOf(deps, month, folder);
  const closed = (await listMonths(deps.db)).find((row) => row.month === month);
  if (closed === undefined) throw new ConfigError(`${month} is not closed`);
  await requireFile(archive.file, closed);
  const yieldToEventLoop = createEventLoopYield(deps.clock);
  for (let after: number | null = 0; after !== null; ) {
    const from: number = after;
    after = await moneyTransaction(deps, (tx) =>
      deleteArchived(tx, archive, { after: from, limit: GROUPS_PER_BATCH }),
    );
    await yieldToEventLoop();
  }
  return archive;
}

/** Returns the record of the archive. Writes and verifies the file first if there is no record. */
async function recordOf(
  { db, clock }: ArchiveDeps,
  month: string,
  folder: string,
): Promise<LedgerArchive> {
  const archives = await listArchives(db);
  const known = archives.find((row) => row.month === month);
  if (known !== undefined) return known;
  const months = await listMonths(db);
  const next = months[archives.length];
  if (next?.month !== month) throw new ConfigError(refusalOf(month, months, next));
  const file = archiveFile(folder, month);
  await writeArchive(file, linesOf(db, next));
  await requireFile(file, next);
  await db.transaction().execute((tx) => insertArchive(tx, next, { file, atMs: clock.now() }));
  const added = (await listArchives(db)).find((row) => row.month === month);
  if (added === undefined) throw new Error(`the archive of ${month} was not stored`);
  return added;
}

function refusalOf(month: string, months: readonly LedgerMonth[], next?: LedgerMonth): string {
  if (!months.some((row) => row.month === month)) {
    return `${month} is not closed: ledger close closes the months that have ended`;
  }
  return `months are archived in order: archive ${next?.month ?? 'the earlier months'} first`;
}

async function* linesOf(db: Database, month: LedgerMonth): AsyncGenerator<TransferLine> {
  for await (const transfer of transfersAfter(db, month.first_seq - 1)) {
    if (transfer.seq > month.last_seq) return;
    yield transferLine(transfer);
  }
}

/** Throws ConfigError, which names the file, unless the file contains exactly the transfers of the month. */
async function requireFile(file: string, month: LedgerMonth): Promise<void> {
  const problem = await problemOfFile(file, month);
  if (problem !== null) throw new ConfigError(problem);
}

/** Yields all transfers of the ledger in order: archived months from their files, later ones from the database. */
export async function* allLines(db: Db, folder: string | null): AsyncGenerator<TransferLine> {
  const months = await listMonths(db);
  let last = 0;
  for (const archive of await listArchives(db)) {
    const closed = months.find(({ month }) => month === archive.month);
    const file = fileIn(archive, folder);
    if (closed === undefined) throw new Error(`${archive.month} is archived and not closed`);
    await requireFile(file, closed);
    yield* readArchive(file);
    last = archive.last_seq;
  }
  for await (const transfer of transfersAfter(db, last)) yield transferLine(transfer);
}

/** Path of an archive: the recorded one, or the file of the same name in `folder`. */
export function fileIn({ file }: LedgerArchive, folder: string | null): string {
  return folder === null ? file : join(folder, basename(file));
}

/** Returns why a file is not the archive of this month, with the file's name; null if it is. */
async function problemOfFile(file: string, month: LedgerMonth): Promise<string | null> {
  const digest = createMonthDigest();
  try {
    for await (const line of readArchive(file)) digest.add(line);
  } catch (error) {
    return `the archive ${file} of ${month.month} cannot be read: ${messageOf(error)}`;
  }
  const { transfers, amount_uusd, rows_hash } = digest.sums();
  const isSame =
    transfers === month.transfers &&
    amount_uusd === month.amount_uusd &&
    rows_hash === month.rows_hash;
  return isSame ? null : `the archive ${file} differs from the closed month ${month.month}`;
}
