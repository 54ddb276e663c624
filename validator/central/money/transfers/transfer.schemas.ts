/** Wire schemas of credit transfers. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import type { FieldNames } from '../../platform/edge/field-names.ts';
import { PAGE } from '../../platform/openapi/field-texts.ts';
import { PageQuery } from '../../platform/portal-answer.ts';
import {
  displayText,
  NaiveTime,
  optional,
  queryNumber,
  Usd,
  usdAmount,
} from '../../platform/wire.ts';

const MAX_EMAIL_CHARS = 254;
const MAX_NOTE_CHARS = 200;
const SMALLEST_USD = 0.000001;
const MAX_USD = 1_000_000_000;
const MAX_LISTED = 1_000;

export const TransferCreditsDto = z
  .object(
    described(
      {
        recipient_email: z.string().trim().min(1).max(MAX_EMAIL_CHARS),
        amount: usdAmount({ min: SMALLEST_USD, max: MAX_USD }),
        note: optional(displayText(MAX_NOTE_CHARS)),
      },
      {
        recipient_email: 'E-mail address of the receiving account.',
        amount: 'USD to transfer, above 0.',
        note: 'Note for the recipient, up to 200 characters; absent for none.',
      },
    ),
  )
  .meta({
    id: 'TransferCreditsDto',
    example: { recipient_email: 'grace@example.com', amount: 2.5, note: 'for the shared node' },
  });
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

const history = described(
  {
    id: z.uuid(),
    direction: z.enum(['sent', 'received']),
    amount: Usd,
    counterparty_email: z.string(),
    note: z.string().nullable(),
    status: z.literal('completed'),
    balance_after: Usd,
    created_at: NaiveTime,
  },
  {
    id: 'Id of the transfer.',
    direction: 'Direction: the caller sent or received the transfer.',
    amount: 'USD that were transferred.',
    counterparty_email: 'Address of the other account; empty if that account was deleted.',
    note: 'Note of the sender; null for none.',
    status: 'Always `completed`, because a transfer happens at once.',
    balance_after: 'Balance of the caller in USD directly after the transfer.',
    created_at: 'Time of the transfer (UTC).',
  },
);

export const TransferHistoryDto = z.object(history).meta({ id: 'TransferHistoryDto' });
export type TransferHistoryDto = z.output<typeof TransferHistoryDto>;

export const TransferHistoryQuery = z
  .object(
    described(
      {
        page: PageQuery.shape.page,
        limit: queryNumber(z.int().min(1).max(MAX_LISTED).default(MAX_LISTED)),
      },
      { page: PAGE, limit: 'Maximum number of transfers per page, 1 to 1000.' },
    ),
  )
  .meta({ example: { page: 1, limit: 20 } });
export type TransferHistoryQuery = z.output<typeof TransferHistoryQuery>;

export const TransferResponse = z
  .object({
    ...history,
    ...described({ balance: Usd }, { balance: 'Balance of the caller in USD now.' }),
  })
  .meta({ id: 'TransferResponse' });
export type TransferResponse = z.output<typeof TransferResponse>;
