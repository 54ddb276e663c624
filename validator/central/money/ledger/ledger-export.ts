/** Exports the whole ledger as lines from which the balances can be recomputed independently. See ../README.md. */
import type { Db } from '../../platform/database/tables.ts';
import { allLines } from './archive.service.ts';
import { allAccounts } from './audit.store.ts';
import { balanceHash, type StoredAccount } from './audit.ts';

export const EXPORT_FORMATS = ['jsonl', 'csv'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** CSV columns. Each kind of row fills some of these columns. */
const COLUMNS = [
  'row',
  'seq',
  'group',
  'at',
  'debit',
  'credit',
  'amount_uusd',
  'kind',
  'pending_seq',
  'cause_type',
  'cause_id',
  'actor',
  'request_id',
  'account',
  'debits_posted',
  'credits_posted',
  'debits_pending',
  'balance_hash',
] as const;

type Value = string | number | null;
type Line = Record<string, Value>;

/**
 * Prints transfers in order, including archived months, then accounts, then the balance hash. `db` must be one snapshot.
 * Archives are read from their recorded paths, or from `folder`; throws ConfigError for one that is missing or differs.
 */
export async function exportLedger(
  db: Db,
  format: ExportFormat,
  print: (line: string) => void,
  folder: string | null = null,
): Promise<void> {
  const write = (line: Line) => print(format === 'csv' ? csvLine(line) : JSON.stringify(line));
  if (format === 'csv') print(COLUMNS.join(','));
  for await (const line of allLines(db, folder)) write(line);
  const accounts = await allAccounts(db);
  for (const account of accounts) write(accountLine(account));
  write({ row: 'end', balance_hash: balanceHash(accounts) });
}

function accountLine({ id, ...figures }: StoredAccount): Line {
  return { row: 'account', account: id, ...figures };
}

function csvLine(line: Line): string {
  return COLUMNS.map((column) => csvValue(line[column] ?? '')).join(',');
}

/** Quotes a value according to RFC 4180. */
export function csvValue(value: Value): string {
  const text = String(value ?? '');
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
