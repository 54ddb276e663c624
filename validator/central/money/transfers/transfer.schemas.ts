/** Wire schemas of credit transfers. */
import { z } from 'zod';
import type { FieldNames } from '../../platform/edge/field-names.ts';
import { displayText, NaiveTime, optional, Usd, usdAmount } from '../../platform/wire.ts';

const MAX_EMAIL_CHARS = 254;
const MAX_NOTE_CHARS = 200;
const SMALLEST_USD = 0.000001;
const MAX_USD = 1_000_000_000;

export const TransferCreditsDto = z
  .object({
    recipient_email: z.string().trim().min(1).max(MAX_EMAIL_CHARS),
    amount: usdAmount({ min: SMALLEST_USD, max: MAX_USD }),
    note: optional(displayText(MAX_NOTE_CHARS)),
  })
  .meta({ id: 'TransferCreditsDto' });
export type TransferCreditsDto = z.output<typeof TransferCreditsDto>;

export const TRANSFER_FIELD_NAMES: FieldNames = {
  synonyms: {
    to: 'recipient_email',
    email: 'recipient_email',
    recipient: 'recipient_email',
    usd: 'amount',
    amount_usd: 'amount',
    memo: 'note',
    message: 'note',
  },
};

const history = {
  id: z.uuid(),
  direction: z.enum(['sent', 'received']),
  amount: Usd,
  /** Empty if that account was deleted. */
  counterparty_email: z.string(),
  note: z.string().nullable(),
  status: z.literal('completed'),
  /** Balance of the caller's account right after the transfer. */
  balance_after: Usd,
  created_at: NaiveTime,
};

export const TransferHistoryDto = z.object(history).meta({ id: 'TransferHistoryDto' });
export type TransferHistoryDto = z.output<typeof TransferHistoryDto>;

export const TransferResponse = z
  .object({ ...history, balance: Usd })
  .meta({ id: 'TransferResponse' });
export type TransferResponse = z.output<typeof TransferResponse>;
