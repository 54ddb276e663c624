/** Wire schemas of GET /users/me/ledger. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
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

export const LedgerQuery = z
  .object(
    described(
      {
        since: optional(IsoTime),
        after: queryNumber(z.int().min(0).default(0)),
        before: queryNumber(z.int().min(0)).optional(),
        order: withDefault(z.enum(['asc', 'desc']), 'asc'),
        limit: queryNumber(z.int().min(1).max(MAX_LINES).default(DEFAULT_LINES)),
        format: withDefault(z.enum(['json', 'csv']), 'json'),
      },
      {
        since: 'Only lines at or after this time (ISO 8601; UTC without an offset).',
        after: 'Only lines with a higher `seq`; 0 begins with the first.',
        before: 'Only lines with a lower `seq`; absent for no limit.',
        order:
          '`asc`: oldest line first. `desc`: newest line first; the next page begins with `before`.',
        limit: 'Maximum number of lines, 1 to 1000.',
        format: '`json`, or `csv` for the same lines as text/csv.',
      },
    ),
  )
  .meta({ example: { after: 0, limit: 50 } });
export type LedgerQuery = z.output<typeof LedgerQuery>;

export const LedgerLine = z
  .object(
    described(
      {
        seq: z.int(),
        at: NaiveTime,
        group_id: z.string(),
        kind: z.enum(['posted', 'held', 'hold_spent', 'hold_released']),
        credit: z.enum(['paid', 'granted']),
        counterpart: z.string(),
        amount_usd: Usd.meta({
          description: 'Change of the balance in USD; negative if money was spent',
        }),
        held_usd: Usd.meta({ description: 'Change of the held amount in USD' }),
        balance_usd: Usd.meta({ description: 'Paid and granted credit after the line, in USD' }),
        cause_type: z.string(),
        cause_id: z.string(),
      },
      {
        seq: 'Number of the line; it increases with time.',
        at: 'Time of the posting (UTC).',
        group_id: 'Id of the group of postings that were made together.',
        kind: 'Effect of the line: it changes the balance (`posted`), reserves money (`held`), or spends or releases such a reservation.',
        credit: 'Kind of credit: paid in, or granted by the marketplace.',
        counterpart:
          'The other ledger account; for accounts of other parties, only the kind of account.',
        amount_usd: 'Change of the balance in USD; negative for money spent.',
        held_usd: 'Change of the reserved money in USD.',
        balance_usd: 'Paid and granted credit after the line, in USD.',
        cause_type: 'Kind of object that caused the line, for example a pod or a transfer.',
        cause_id: 'Id of the object that caused the line.',
      },
    ),
  )
  .meta({ id: 'LedgerLine' });
export type LedgerLine = z.output<typeof LedgerLine>;

export const LedgerPage = z
  .object(
    described(
      {
        lines: z.array(LedgerLine),
        next_after: z.int().nullable(),
        next_before: z.int().nullable(),
      },
      {
        lines: 'Lines of the journal, in the requested order.',
        next_after:
          'Value of `after` for the next page; null on the last page, and with `order=desc`.',
        next_before:
          'Value of `before` for the next page with `order=desc`; null on the last page, and without it.',
      },
    ),
  )
  .meta({ id: 'LedgerPage' });
export type LedgerPage = z.output<typeof LedgerPage>;
