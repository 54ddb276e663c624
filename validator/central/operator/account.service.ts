/** Accounts for operators: a search, and one account with its balance and pods. */
import { microToUsd } from '#shared/api/money.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { createAccountView } from '../accounts/account/account-view.ts';
import { accountById } from '../accounts/auth/account-access.ts';
import { podStateOf, wireStatus } from '../market/pods/pod.state.ts';
import { meteredPods } from '../money/metering/metered.service.ts';
import { refundableOf } from '../money/metering/operator-refund.service.ts';
import type { Database } from '../platform/database/tables.ts';
import type { PageQuery } from '../platform/portal-answer.ts';
import { type AccountSearch, listPodsOf, searchAccounts } from './account.store.ts';
import type { OperatorAccount, OperatorAccountPage } from './operator.schemas.ts';

export type AccountsForOperators = ReturnType<typeof createAccountsForOperators>;

export function createAccountsForOperators(
  { db, clock }: { db: Database; clock: Clock },
  ports: Parameters<typeof createAccountView>[1],
) {
  const view = createAccountView(db, ports);
  return {
    async search(query: AccountSearch): Promise<OperatorAccountPage> {
      const { total, rows } = await searchAccounts(db, query);
      const { page, limit } = query;
      const accounts = rows.map((row) => ({
        id: row.id,
        email: row.email,
        name: row.name,
        email_verified: row.email_verified_at !== null,
        admin: row.operator_since !== null,
        created_at: naiveUtc(row.created_at),
      }));
      return { accounts, page, limit, total };
    },

    /** Throws `not_found` for an unknown or deleted account. */
    async get(id: string, { page, limit }: PageQuery): Promise<OperatorAccount> {
      const account = await accountById(db, id);
      if (account === undefined) {
        throw new ApiError('not_found', 'No account has this id', {
          hint: 'Search for the account with GET /operator/accounts.',
        });
      }
      const { total, pods } = await listPodsOf(db, id, { page, limit });
      const podIds = pods.map((pod) => pod.id);
      const meters = await meteredPods(db, podIds, clock.now());
      const refundable = await refundableOf(db, podIds);
      return {
        account: await view(account),
        page,
        limit,
        total,
        pods: pods.map((pod) => ({
          id: pod.id,
          pod_name: pod.pod_name,
          executor_id: pod.executor_id,
          status: wireStatus(podStateOf(pod.state)),
          gpu_count: pod.gpu_count,
          price_per_gpu_hour: microToUsd(pod.price_uusd_per_gpu_hour),
          charged: microToUsd(meters.get(pod.id)?.charged_uusd ?? 0),
          refunded: microToUsd(meters.get(pod.id)?.refunded_uusd ?? 0),
          refundable: microToUsd(refundable.get(pod.id) ?? 0),
          created_at: naiveUtc(pod.created_at),
          ended_at: pod.ended_at === null ? null : naiveUtc(pod.ended_at),
        })),
      };
    },
  };
}
