/** Sums and hashes of a month of the ledger. Pure. */
import { createHash } from 'node:crypto';
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { LedgerMonth } from '../../platform/database/tables.ts';
import type { TransferLine } from './export-line.ts';

/** Number, sum and hash of the transfers of a month. */
export type MonthSums = Pick<LedgerMonth, 'transfers' | 'amount_uusd' | 'rows_hash'>;

/** Creates a digest. Call `add` for every transfer of the month in order, then `sums`. */
export function createMonthDigest() {
  const hash = createHash('sha256');
  let transfers = 0;
  let amount = 0n;
  return {
    add(line: TransferLine): void {
      hash.update(`${JSON.stringify(line)}\n`);
      transfers += 1;
      amount += BigInt(line.amount_uusd);
    },
    sums: (): MonthSums => ({
      transfers,
      amount_uusd: String(amount),
      rows_hash: hash.copy().digest('hex'),
    }),
  };
}

/** Hash that includes all earlier months through the hash of the month before; null for the first month. */
export function chainHash(
  previous: string | null,
  month: Omit<LedgerMonth, 'chain_hash' | 'closed_at'>,
): string {
  const {
    month: name,
    first_seq,
    last_seq,
    transfers,
    amount_uusd,
    rows_hash,
    balance_hash,
  } = month;
  const fields = [
    previous ?? '',
    name,
    first_seq,
    last_seq,
    transfers,
    amount_uusd,
    rows_hash,
    balance_hash,
  ];
  return createHash('sha256').update(fields.join('\n')).digest('hex');
}

const MONTH_CHARS = 'YYYY-MM'.length;

/** The month (UTC) of an instant, as `2026-10`. */
export function monthOf(atMs: number): string {
  return naiveUtc(atMs).slice(0, MONTH_CHARS);
}
