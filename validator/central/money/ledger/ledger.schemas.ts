/** GET /users/me/ledger on the wire: an addition of ours to the interface. */
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
  /** From the first line after the last that is older. */
  since: optional(IsoTime),
  /** From the line after this number. */
  after: queryNumber(z.int().min(0).default(0)),
  limit: queryNumber(z.int().min(1).max(MAX_LINES).default(DEFAULT_LINES)),
  format: withDefault(z.enum(['json', 'csv']), 'json'),
});
export type LedgerQuery = z.output<typeof LedgerQuery>;

export const LedgerLine = z
  .object({
    seq: z.int(),
    at: NaiveTime,
    /** Lines of one group happened together. */
    group_id: z.string(),
    kind: z.enum(['posted', 'held', 'hold_spent', 'hold_released']),
    credit: z.enum(['paid', 'granted']),
    /** Where it went or came from; of other people's accounts only what kind they are. */
    counterpart: z.string(),
    amount_usd: Usd.meta({
      description: 'What it changed of the balance, in USD; negative: spent',
    }),
    held_usd: Usd.meta({ description: 'What it changed of what is held, in USD' }),
    balance_usd: Usd.meta({ description: 'Paid and granted credit after it, in USD' }),
    cause_type: z.string(),
    cause_id: z.string(),
  })
  .meta({ id: 'LedgerLine' });
export type LedgerLine = z.output<typeof LedgerLine>;

export const LedgerPage = z
  .object({
    lines: z.array(LedgerLine),
    /** `after` of the next page; null: there is none yet. */
    next_after: z.int().nullable(),
  })
  .meta({ id: 'LedgerPage' });
export type LedgerPage = z.output<typeof LedgerPage>;
