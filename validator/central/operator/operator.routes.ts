/** Routes below /operator: accounts, refunds, bans of providers, and the audit entries of all of them. */
import type { HttpServer } from '#shared/http/server.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { invalidField } from '#shared/runtime/errors.ts';
import type { OperatorRefunds } from '../money/metering/operator-refund.service.ts';
import { listAudit } from '../platform/audit/audit.service.ts';
import type { Database, Db } from '../platform/database/tables.ts';
import { type MoneyDeps, moneyTransaction } from '../platform/database/transactions.ts';
import { answerOnce, type OnceDeps } from '../platform/idempotency/once.ts';
import { actorOf, userOf } from '../platform/identity.ts';
import { PageQuery } from '../platform/portal-answer.ts';
import { IdParams } from '../platform/wire.ts';
import type { ProviderBans } from '../providers/provider-ban.service.ts';
import type { AccountsForOperators } from './account.service.ts';
import {
  AccountSearchQuery,
  AuditEntries,
  AuditQuery,
  BanChanged,
  ChangeBan,
  OperatorAccount,
  OperatorAccountPage,
  PodRefunded,
  ProviderParams,
  REFUND_FIELD_NAMES,
  RefundPod,
} from './operator.schemas.ts';

const tags = ['Operator'];
const config = { auth: 'operator' } as const;
const forbidden = "the account does not have the operator's role";

export function registerAccounts(api: HttpServer, accounts: AccountsForOperators): void {
  api.get(
    '/operator/accounts',
    {
      config,
      schema: {
        tags,
        summary: 'Search accounts',
        description:
          'Returns the accounts whose address or name contains the text, or whose id is the text.',
        errors: { forbidden },
        querystring: AccountSearchQuery,
        response: { 200: OperatorAccountPage },
      },
    },
    (request) => accounts.search(request.query),
  );
  api.get(
    '/operator/accounts/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Read an account',
        description: 'Returns one account with its balance and a page of its pods.',
        errors: { forbidden, not_found: 'no account has this id' },
        params: IdParams,
        querystring: PageQuery,
        response: { 200: OperatorAccount },
      },
    },
    (request) => accounts.get(request.params.id, request.query),
  );
}

export function registerRefunds(
  api: HttpServer,
  { refunds, ...once }: OnceDeps & { refunds: OperatorRefunds },
): void {
  api.post(
    '/operator/pods/:id/refund',
    {
      config: { ...config, once: 'operator-refund', fieldNames: REFUND_FIELD_NAMES },
      schema: {
        tags,
        summary: 'Refund an ended pod',
        description:
          'Returns the amount that a renter paid for a pod, or a part of this amount, to the balance of the renter. The platform pays the refund, and the provider keeps its earnings. Pods of the renter that were stopped for lack of money restart. The renter receives an event, and an audit entry records the reason.',
        errors: {
          forbidden,
          pod_not_found: 'no pod with this id has been charged',
          pod_state_conflict: 'the pod has not ended',
          conflict: 'the pod was already refunded; a pod can be refunded only once',
          bad_request:
            'the amount is above the amount that the renter paid, or the renter paid nothing',
        },
        params: IdParams,
        body: RefundPod,
        response: { 200: PodRefunded },
      },
    },
    async (request, reply) => {
      const { amount: amountUsd, reason } = request.body;
      const { accountId: operator } = userOf(request);
      const refund = { podId: request.params.id, amountUsd, reason, operator };
      const effects = (tx: Db) => refunds.refund(tx, refund, actorOf(request));
      await answerOnce(once, { request, reply }, { schema: PodRefunded, effects });
      return reply;
    },
  );
}

export function registerBans(
  api: HttpServer,
  { bans, ...deps }: MoneyDeps & { bans: ProviderBans },
): void {
  const texts = {
    ban: {
      summary: 'Ban a provider',
      description:
        "Prevents new rentals of the provider's nodes and payouts to the provider. Running pods continue. An audit entry records the reason.",
    },
    unban: {
      summary: 'End the ban of a provider',
      description:
        'Ends the ban. The nodes are offered again once a validator has verified them. An audit entry records the reason.',
    },
  };
  for (const act of ['ban', 'unban'] as const) {
    api.post(
      `/operator/providers/:hotkey/${act}`,
      {
        config,
        schema: {
          tags,
          ...texts[act],
          errors: { forbidden, not_found: 'no provider has this hotkey' },
          retry:
            'Safe: a repeated request changes nothing, except that it writes another audit entry.',
          params: ProviderParams,
          body: ChangeBan,
          response: { 200: BanChanged },
        },
      },
      async (request) => {
        const { hotkey } = request.params;
        const change = { hotkey, reason: request.body.reason, operator: userOf(request).accountId };
        const changed = await moneyTransaction(deps, (tx) => bans[act](tx, change));
        return { hotkey, banned: act === 'ban', changed };
      },
    );
  }
}

export function registerAudit(api: HttpServer, { db }: { db: Database }): void {
  api.get(
    '/operator/audit',
    {
      config,
      schema: {
        tags,
        summary: 'List the actions of operators',
        description:
          'Returns audit entries with their reasons, newest first, of one subject or of all subjects. Entries never change.',
        errors: { forbidden },
        querystring: AuditQuery,
        response: { 200: AuditEntries },
      },
    },
    async (request) => {
      const { subject_type, subject_id, ...page } = request.query;
      if ((subject_type === undefined) !== (subject_id === undefined)) {
        throw invalidField('query.subject_id', 'subject_type and subject_id are required together');
      }
      const subject =
        subject_type === undefined || subject_id === undefined
          ? undefined
          : { subject_type, subject_id };
      const entries = await listAudit(db, { ...page, subject });
      return entries.map(({ at_ms: atMs, ...entry }) => ({ ...entry, at: naiveUtc(atMs) }));
    },
  );
}
