/** Queries on billable meters: the pods whose present time is charged, by account. */
import { sql } from 'kysely';
import { isPostgres } from '../../../database/engine.ts';
import { ACTIVE_STATES } from '../../market/notices/notice.state.ts';
import { idsJson, isAmong, prepared, type Slots } from '../../platform/database/prepared.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Meter } from './usage.store.ts';

/** Ends of a pod's billable time that are stored outside its meter. */
export type MeterBounds = {
  seen_at: number | null;
  /** Last contact at which the pod was healthy. It ends no time. */
  healthy_at: number | null;
  removal_at: number | null;
  /** Time at which the pod's node is removed permanently, according to a notice in force. */
  leaves_at: number | null;
  max_spend_uusd: number | null;
  /** Time at which the pod is stopped because it is idle, unless it is used before. */
  idle_stop_at: number | null;
  /** Time at which a budget of the API key that rented the pod is used up. */
  key_stops_at: number | null;
};

/** Balances of the pod's account: of paid and of granted credit. Null without a posting. */
export type MeterBalances = {
  paid_debits: number | null;
  paid_credits: number | null;
  paid_pending: number | null;
  granted_debits: number | null;
  granted_credits: number | null;
  granted_pending: number | null;
};

/** A literal, because the engines use the partial index of billable meters only for a condition that they can compare. */
const BILLABLE = sql.lit<0 | 1>(1);

const burning = prepared((db, { accountId }: Slots<{ accountId: string }>) =>
  db
    .selectFrom('usage_meters')
    .selectAll()
    .where('account_id', '=', accountId)
    .where('is_billable', '=', BILLABLE)
    .orderBy('pod_id'),
);

/** The account's billable meters. */
export async function listBurning(db: Db, accountId: string): Promise<Meter[]> {
  return (await burning(db, { accountId })).rows;
}

const burningOf = prepared((db, { rows }: Slots<{ rows: string }>) =>
  db
    .selectFrom('usage_meters')
    .innerJoin('pods', 'pods.id', 'usage_meters.pod_id')
    .leftJoin('ledger_accounts as paid', (join) =>
      join.on('paid.id', '=', sql<string>`'user:' || usage_meters.account_id`),
    )
    .leftJoin('ledger_accounts as granted', (join) =>
      join.on('granted.id', '=', sql<string>`'granted:' || usage_meters.account_id`),
    )
    .selectAll('usage_meters')
    .select([
      'pods.seen_at',
      'pods.healthy_at',
      'pods.removal_at',
      'pods.max_spend_uusd',
      'pods.idle_stop_at',
    ])
    .select([
      'paid.debits_posted as paid_debits',
      'paid.credits_posted as paid_credits',
      'paid.debits_pending as paid_pending',
      'granted.debits_posted as granted_debits',
      'granted.credits_posted as granted_credits',
      'granted.debits_pending as granted_pending',
    ])
    .select((eb) =>
      eb
        .selectFrom('notices')
        .select('start_at')
        .whereRef('notices.executor_id', '=', 'pods.executor_id')
        .where('permanent', '=', 1)
        .where('state', 'in', ACTIVE_STATES)
        .as('leaves_at'),
    )
    .select((eb) =>
      eb
        .selectFrom('api_key_budgets')
        .select('stops_at')
        .whereRef('api_key_budgets.api_key_id', '=', 'pods.created_by_api_key_id')
        .as('key_stops_at'),
    )
    .where('usage_meters.is_billable', '=', BILLABLE)
    .where(isAmong(db, 'usage_meters.account_id', rows))
    .orderBy('usage_meters.account_id')
    .orderBy('usage_meters.pod_id'),
);

/**
 * Billable meters of these accounts with the ends of their time and the balances of their account, ordered by account.
 * One statement, so that the posted charges and the balances belong to the same instant.
 */
export async function listBurningOf(
  db: Db,
  accountIds: readonly string[],
): Promise<(Meter & MeterBounds & MeterBalances)[]> {
  return (await burningOf(db, { rows: idsJson(accountIds) })).rows;
}

/**
 * Accounts after `cursor` with billable meters, in order, until they have `podLimit` such meters; at least one account.
 * The returned cursor is null after the last account. Skips accounts that another process has locked, and locks the
 * returned accounts.
 */
export async function claimBurningAccounts(
  tx: Db,
  { cursor, podLimit }: { cursor: string; podLimit: number },
): Promise<{ claimed: string[]; cursor: string | null }> {
  const { rows } = await burningAfter(tx, { cursor, podLimit });
  const ids = [...new Set(rows.map(({ account_id: id }) => id))];
  const isLast = rows.length < podLimit;
  // The meters of the last account may be incomplete. An account alone is claimed with all its meters.
  const whole = isLast || ids.length === 1 ? ids : ids.slice(0, -1);
  const next = isLast ? null : (whole.at(-1) ?? null);
  return { claimed: await lockFree(tx, whole), cursor: next };
}

const burningAfter = prepared(
  (db, { cursor, podLimit }: Slots<{ cursor: string; podLimit: number }>) =>
    db
      .selectFrom('usage_meters')
      .select('account_id')
      .where('is_billable', '=', BILLABLE)
      .where('account_id', '>', cursor)
      .orderBy('account_id')
      .limit(podLimit),
);

async function lockFree(tx: Db, accountIds: readonly string[]): Promise<string[]> {
  if (!isPostgres(tx) || accountIds.length === 0) return [...accountIds];
  const locked = await tx
    .selectFrom('accounts')
    .select('id')
    .where('id', 'in', accountIds)
    .orderBy('id')
    .forNoKeyUpdate()
    .skipLocked()
    .execute();
  return locked.map(({ id }) => id);
}

const accountsOf = prepared((db, { podIds }: Slots<{ podIds: string }>) =>
  db
    .selectFrom('usage_meters')
    .select('account_id')
    .distinct()
    .where('is_billable', '=', BILLABLE)
    .where(isAmong(db, 'pod_id', podIds)),
);

/** Accounts of those of these pods that are billable now. */
export async function burningAccountsOf(db: Db, podIds: readonly string[]): Promise<string[]> {
  if (podIds.length === 0) return [];
  const { rows } = await accountsOf(db, { podIds: idsJson(podIds) });
  return rows.map(({ account_id: id }) => id);
}

/** Accounts with billable pods on the nodes of a provider. */
export async function burningAccountsOn(db: Db, providerId: string): Promise<string[]> {
  const rows = await db
    .selectFrom('usage_meters')
    .select('account_id')
    .distinct()
    .where('is_billable', '=', 1)
    .where('ended_at', 'is', null)
    .where('executor_id', 'in', (eb) =>
      eb.selectFrom('executors').select('id').where('provider_id', '=', providerId),
    )
    .execute();
  return rows.map(({ account_id: id }) => id);
}
