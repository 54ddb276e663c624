/** Money of a simulation: balances by kind of account, what renters paid against their quotes, and providers' income. */
import type { Database } from '../../central/platform/database/tables.ts';
import type { PodMoney, UsedTime } from './fault-effects.ts';
import type { LedgerSample, Spend } from './report.ts';

const MICRO_USD = 1_000_000;
/** Causes for which a pod is not charged because of its host. */
const LOST_CAUSES: ReadonlySet<string> = new Set([
  'contact_lost',
  'provider_fault',
  'maintenance',
  'failed',
]);

/** Returns the balances of all accounts of each kind. Kinds are the parts of account names before the colon. */
export async function sampleLedger(db: Database, atHours: number): Promise<LedgerSample> {
  const accounts = await db
    .selectFrom('ledger_accounts')
    .select(['id', 'credits_posted', 'debits_posted', 'debits_pending'])
    .execute();
  const balances: Record<string, number> = {};
  let held = 0;
  for (const { id, credits_posted: credits, debits_posted: debits, debits_pending } of accounts) {
    const kind = kindOf(id);
    balances[kind] = (balances[kind] ?? 0) + credits - debits;
    held += debits_pending;
  }
  const inUsd = Object.entries(balances).map(([kind, uusd]) => [kind, uusd / MICRO_USD] as const);
  return {
    at_hours: atHours,
    held_usd: held / MICRO_USD,
    balances_usd: Object.fromEntries(inUsd.toSorted(([a], [b]) => (a < b ? -1 : 1))),
  };
}

/** Only accounts of the platform and outside of it keep their whole name. */
function kindOf(account: string): string {
  const kind = account.split(':', 1)[0] ?? '';
  return ['user', 'granted', 'provider', 'referral'].includes(kind) ? kind : account;
}

/** Returns quote and charge of each pod that has run and ended. `quotes`: micro-USD by pod. */
export async function listSpend(
  db: Database,
  quotes: ReadonlyMap<string, number>,
): Promise<Spend[]> {
  const meters = await db
    .selectFrom('usage_meters')
    .select(['pod_id', 'charged_uusd', 'refunded_uusd'])
    .where('ended_at', 'is not', null)
    .orderBy('pod_id')
    .execute();
  return meters.flatMap(({ pod_id: pod, charged_uusd: charged, refunded_uusd: refunded }) => {
    const quote = quotes.get(pod);
    if (quote === undefined) return [];
    return [{ quoted_usd: quote / MICRO_USD, paid_usd: (charged - refunded) / MICRO_USD }];
  });
}

/** Returns what each provider has earned in USD, ascending, with zero for those without earnings. */
export async function listIncomes(db: Database): Promise<number[]> {
  const providers = await db.selectFrom('providers').select('id').execute();
  const earned = await db
    .selectFrom('usage_meters')
    .select(['provider_id', (eb) => eb.fn.sum<number>('provider_uusd').as('uusd')])
    .groupBy('provider_id')
    .execute();
  const incomes = new Map(earned.map(({ provider_id: id, uusd }) => [id, Number(uusd)]));
  return providers.map(({ id }) => (incomes.get(id) ?? 0) / MICRO_USD).sort((a, b) => a - b);
}

/** Money of the rentals of a host in micro-USD: the provider's income by the account that rented. */
export type RentedBy = ReadonlyMap<string, { incomeUusd: number; paidUusd: number }>;

/** Returns the rentals of each host by executor and account. */
export async function listRentedBy(db: Database): Promise<ReadonlyMap<string, RentedBy>> {
  const rows = await db
    .selectFrom('usage_meters')
    .select(['executor_id', 'account_id'])
    .select((eb) => [
      eb.fn.sum<number>('provider_uusd').as('income'),
      eb.fn.sum<number>('charged_uusd').as('charged'),
      eb.fn.sum<number>('refunded_uusd').as('refunded'),
    ])
    .groupBy(['executor_id', 'account_id'])
    .execute();
  const hosts = new Map<string, Map<string, { incomeUusd: number; paidUusd: number }>>();
  for (const { executor_id: executor, account_id: account, income, charged, refunded } of rows) {
    const accounts = hosts.get(executor) ?? new Map();
    hosts.set(executor, accounts);
    accounts.set(account, {
      incomeUusd: Number(income),
      paidUusd: Number(charged) - Number(refunded),
    });
  }
  return hosts;
}

/** Returns the time of all pods from their first start. `nowMs`: wall-clock time, at which present states are cut. */
export async function listUsedTime(db: Database, nowMs: number): Promise<UsedTime[]> {
  const rows = await db
    .selectFrom('usage_segments')
    .innerJoin('usage_meters', 'usage_meters.pod_id', 'usage_segments.pod_id')
    .select([
      'usage_segments.pod_id',
      'usage_segments.from_ms',
      'usage_segments.to_ms',
      'usage_segments.is_billable',
      'usage_segments.cause',
      'usage_segments.price_uusd_per_gpu_hour',
      'usage_segments.gpu_count',
      'usage_meters.executor_id',
    ])
    .orderBy('usage_segments.pod_id')
    .orderBy('usage_segments.seq')
    .execute();
  return rows.map((row) => ({
    pod: row.pod_id,
    executor: row.executor_id,
    fromMs: row.from_ms,
    toMs: row.to_ms ?? nowMs,
    isCharged: row.is_billable === 1,
    isLost: row.is_billable === 0 && LOST_CAUSES.has(row.cause),
    gpus: row.gpu_count,
    usdPerHour: (row.price_uusd_per_gpu_hour * row.gpu_count) / MICRO_USD,
  }));
}

/** Returns what was paid and refunded for each pod, by pod. */
export async function listPodMoney(db: Database): Promise<ReadonlyMap<string, PodMoney>> {
  const rows = await db
    .selectFrom('usage_meters')
    .leftJoin('usage_refunds', 'usage_refunds.pod_id', 'usage_meters.pod_id')
    .select([
      'usage_meters.pod_id',
      'usage_meters.charged_uusd',
      'usage_meters.refunded_uusd',
      'usage_refunds.provider_uusd',
    ])
    .execute();
  return new Map(
    rows.map(({ pod_id: pod, charged_uusd: charged, refunded_uusd: refunded, ...refund }) => [
      pod,
      {
        paidUsd: (charged - refunded) / MICRO_USD,
        refundedUsd: refunded / MICRO_USD,
        providerRefundedUsd: (refund.provider_uusd ?? 0) / MICRO_USD,
      },
    ]),
  );
}
