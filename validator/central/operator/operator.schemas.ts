/** Wire schemas of the routes below /api/operator. */
import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { User } from '../accounts/account/account.schemas.ts';
import { MAX_REASON_CHARS } from '../platform/audit/audit.service.ts';
import type { FieldNames } from '../platform/edge/field-names.ts';
import { CREATED_AT, LIMIT, PAGE, TOTAL } from '../platform/openapi/field-texts.ts';
import { PageQuery } from '../platform/portal-answer.ts';
import { displayText, NaiveTime, optional, queryNumber, Usd, usdAmount } from '../platform/wire.ts';

const MAX_QUERY_CHARS = 254;
const MAX_AUDIT_ENTRIES = 1_000;
const SMALLEST_USD = 0.000001;
const MAX_USD = 1_000_000;

const Reason = displayText(MAX_REASON_CHARS).trim().min(1);
const REASON = `Reason for the action, in 1 to ${MAX_REASON_CHARS} characters. The audit entry contains it.`;

export const AccountSearchQuery = PageQuery.extend(
  described(
    { q: z.string().max(MAX_QUERY_CHARS).default('') },
    { q: 'Part of the e-mail address or name, or the complete id; absent for all accounts.' },
  ),
).meta({ example: { q: 'example.com', page: 1, limit: 20 } });

const AccountRow = z.object(
  described(
    {
      id: z.uuid(),
      email: z.string(),
      name: z.string(),
      email_verified: z.boolean(),
      admin: z.boolean(),
      created_at: NaiveTime,
    },
    {
      id: 'Id of the account.',
      email: 'E-mail address.',
      name: 'Name of the account.',
      email_verified: 'True if the address was confirmed.',
      admin: "True if the account has the operator's role.",
      created_at: CREATED_AT,
    },
  ),
);

export const OperatorAccountPage = z
  .object(
    described(
      { accounts: z.array(AccountRow), page: z.int(), limit: z.int(), total: z.int() },
      { accounts: 'Accounts of this page, newest first.', page: PAGE, limit: LIMIT, total: TOTAL },
    ),
  )
  .meta({ id: 'OperatorAccountPage' });
export type OperatorAccountPage = z.output<typeof OperatorAccountPage>;

const AccountPod = z.object(
  described(
    {
      id: z.uuid(),
      pod_name: z.string(),
      executor_id: z.uuid(),
      status: z.string(),
      gpu_count: z.int(),
      price_per_gpu_hour: Usd,
      charged: Usd,
      refunded: Usd,
      refundable: Usd,
      created_at: NaiveTime,
      ended_at: NaiveTime.nullable(),
    },
    {
      id: 'Id of the pod.',
      pod_name: 'Name of the pod.',
      executor_id: 'Id of the node.',
      status: 'Status of the pod.',
      gpu_count: 'Number of GPUs.',
      price_per_gpu_hour: 'Price in USD per GPU and hour.',
      charged: 'USD charged for the pod so far, before refunds.',
      refunded: 'USD refunded, including the amount that the platform had absorbed.',
      refundable:
        'USD that can be refunded now; 0 while the pod has not ended, and after a refund.',
      created_at: CREATED_AT,
      ended_at: 'Time at which the pod ended (UTC); null while it has not ended.',
    },
  ),
);

export const OperatorAccount = z
  .object(
    described(
      {
        account: User,
        pods: z.array(AccountPod),
        page: z.int(),
        limit: z.int(),
        total: z.int(),
      },
      {
        account: 'The account with its balance, in the form that its owner receives.',
        pods: 'Pods of this page, newest first.',
        page: PAGE,
        limit: LIMIT,
        total: 'Number of pods on all pages.',
      },
    ),
  )
  .meta({ id: 'OperatorAccount' });
export type OperatorAccount = z.output<typeof OperatorAccount>;

/** The request moves money, so the API must not ignore a misspelt `amount` and refund the whole charge. */
export const REFUND_FIELD_NAMES: FieldNames = { synonyms: { amount_usd: 'amount', usd: 'amount' } };

export const RefundPod = z
  .object(
    described(
      {
        amount: optional(usdAmount({ min: SMALLEST_USD, max: MAX_USD })),
        reason: Reason,
      },
      {
        amount:
          'USD to refund, at most the amount that the renter paid; absent for the whole amount.',
        reason: REASON,
      },
    ),
  )
  .meta({ id: 'RefundPod', example: { amount: 0.01, reason: 'the image did not start' } });

export const PodRefunded = z
  .object(
    described(
      {
        pod_id: z.uuid(),
        account_id: z.uuid(),
        amount: Usd,
        group_id: z.string(),
        refunded_at: NaiveTime,
      },
      {
        pod_id: 'Id of the pod.',
        account_id: 'Id of the account that received the refund.',
        amount: 'USD refunded.',
        group_id: 'Id of the group of transfers in the ledger.',
        refunded_at: 'Time of the refund (UTC).',
      },
    ),
  )
  .meta({ id: 'PodRefunded' });

export const ProviderParams = z.object({
  hotkey: z.string().max(64).describe("ss58 of the provider's hotkey."),
});

export const ChangeBan = z
  .object(described({ reason: Reason }, { reason: REASON }))
  .meta({ id: 'ChangeBan', example: { reason: 'sold cards that do not exist' } });

export const BanChanged = z
  .object(
    described(
      { hotkey: z.string(), banned: z.boolean(), changed: z.boolean() },
      {
        hotkey: "ss58 of the provider's hotkey.",
        banned: 'True if the provider is banned now.',
        changed:
          'False if the provider was already in this state. An audit entry is written in both cases.',
      },
    ),
  )
  .meta({ id: 'BanChanged' });

export const AuditQuery = z
  .object(
    described(
      {
        subject_type: z.enum(['provider', 'pod', 'account']).optional(),
        subject_id: z.string().max(MAX_QUERY_CHARS).optional(),
        before: queryNumber(z.int().min(1)).optional(),
        limit: queryNumber(z.int().min(1).max(MAX_AUDIT_ENTRIES).default(100)),
      },
      {
        subject_type: 'Kind of the subject; requires `subject_id`.',
        subject_id:
          'Only entries of this subject; requires `subject_type`; absent for all subjects.',
        before: 'Only entries with a lower number; absent for the newest entries.',
        limit: 'Maximum number of entries, 1 to 1000; 100 by default.',
      },
    ),
  )
  .meta({ example: { limit: 100 } });

export const AuditEntries = z
  .array(
    z.object(
      described(
        {
          seq: z.int(),
          operator: z.string(),
          action: z.string(),
          subject_type: z.string(),
          subject_id: z.string(),
          reason: z.string(),
          at: NaiveTime,
        },
        {
          seq: 'Number of the entry, ascending.',
          operator:
            "Id of the operator's account; for a command, the name of the login on the host.",
          action:
            'Action: `provider.ban`, `provider.unban`, `pod.refund`, `operator.grant` or `operator.revoke`.',
          subject_type: 'Kind of the subject: `provider`, `pod` or `account`.',
          subject_id: 'Id of the subject.',
          reason: 'Reason for the action.',
          at: 'Time of the action (UTC).',
        },
      ),
    ),
  )
  .meta({ id: 'AuditEntries' });
