/** One transfer as a line of the export and of an archive. The hash of a closed month is computed over these lines. */
import { z } from 'zod';
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { CausedTransfer } from './audit.store.ts';
import type { StoredTransfer } from './audit.ts';

export type TransferLine = z.output<typeof TransferLine>;
export const TransferLine = z.strictObject({
  row: z.literal('transfer'),
  seq: z.int(),
  group: z.int(),
  at: z.string(),
  debit: z.string(),
  credit: z.string(),
  amount_uusd: z.int(),
  kind: z.enum(['direct', 'pending', 'post', 'void']),
  pending_seq: z.int().nullable(),
  cause_type: z.string(),
  cause_id: z.string(),
  actor: z.string(),
  request_id: z.string().nullable(),
});

export function transferLine(transfer: CausedTransfer): TransferLine {
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

/** Converts a line of an archive for the audit. */
export function transferOf(line: TransferLine): StoredTransfer {
  const { seq, group, debit, credit, amount_uusd, kind, pending_seq } = line;
  return {
    seq,
    group_id: group,
    debit_id: debit,
    credit_id: credit,
    amount_uusd,
    kind,
    pending_seq,
  };
}
