/** Wire schemas of GET /users/me/ledger. */
import { z } from 'zod';
import {
  IsoTime,
  NaiveTime,
  optional,
  queryNumber,
  Usd,
  withDefault,
} from '../../platform/wire.ts';

const MAX_LINES = 1_000;
const DEFAULT_LINES = 100;

export const LedgerQuery = z.object({
  /** Skips lines before this time. */
  since: optional(IsoTime),
  /** Skips lines up to this `seq`. */
  after: queryNumber(z.int().min(0).default(0)),
  limit: queryNumber(z.int().min(1).max(MAX_LINES).default(DEFAULT_LINES)),
  format: withDefault(z.enum(['json', 'csv']), 'json'),
});
export type LedgerQuery = z.output<typeof LedgerQuery>;

export const LedgerLine = z
  .object({
    seq: z.int(),
    at: NaiveTime,
    /** Lines of one group were posted together. */
    group_id: z.string(),
    kind: z.enum(['posted', 'held', 'hold_spent', 'hold_released']),
    credit: z.enum(['paid', 'granted']),
    /** The other ledger account; for accounts of other parties only its kind. */
    counterpart: z.string(),
    amount_usd: Usd.meta({
      description: 'Change of the balance in USD; negative if money was spent',
    }),
    held_usd: Usd.meta({ description: 'Change of the held amount in USD' }),
    balance_usd: Usd.meta({ description: 'Paid and granted credit after the line, in USD' }),
    cause_type: z.string(),
    cause_id: z.string(),
  })
  .meta({ id: 'LedgerLine' });
export type LedgerLine = z.output<typeof LedgerLine>;

export const LedgerPage = z
  .object({
    lines: z.array(LedgerLine),
    /** Value of `after` for the next page; null on the last page. */
    next_after: z.int().nullable(),
  })
  .meta({ id: 'LedgerPage' });
export type LedgerPage = z.output<typeof LedgerPage>;
