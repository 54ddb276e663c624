/** Exports the whole ledger as lines from which the balances can be recomputed independently. See ../README.md. */
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { Db } from '../../platform/database/tables.ts';
import { allAccounts, allTransfers, type CausedTransfer } from './audit.store.ts';
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

/** Prints transfers in order, then accounts, then the balance hash. `db` must be one snapshot. */
export async function exportLedger(
  db: Db,
  format: ExportFormat,
  print: (line: string) => void,
): Promise<void> {
  const write = (line: Line) => print(format === 'csv' ? csvLine(line) : JSON.stringify(line));
  if (format === 'csv') print(COLUMNS.join(','));
  for await (const transfer of allTransfers(db)) write(transferLine(transfer));
  const accounts = await allAccounts(db);
  for (const account of accounts) write(accountLine(account));
  write({ row: 'end', balance_hash: balanceHash(accounts) });
}

function transferLine(transfer: CausedTransfer): Line {
  const { seq, group_id, at_ms, debit_id, credit_id, amount_uusd, kind, pending_seq } = transfer;
  const { cause_type, cause_id, actor, request_id } = transfer;
  return {
    row: 'transfer',
    seq,
    group: group_id,
    at: `${naiveUtc(at_ms)}Z`,
    debit: debit_id,
    credit: credit_id,
    amount_uusd,
    kind,
    pending_seq,
    cause_type,
    cause_id,
    actor,
    request_id,
  };
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
