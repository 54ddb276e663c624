/** Queries on charges: settlements of pods, provider earnings by day, refunds. */
import { type Selectable, sql } from 'kysely';
import { jsonRows, prepared, type Slots } from '../../platform/database/prepared.ts';
import type {
  BillingPeriodsTable,
  BillingTicksTable,
  UsageRefundsTable,
} from '../../platform/database/tables/metering.ts';
import type { Db } from '../../platform/database/tables.ts';
import { netFee } from '../ledger/shares.ts';
import { type DayShare, paidIn } from './charge.plan.ts';
import { addFees } from './paid-fees.store.ts';
import type { Meter } from './usage.store.ts';

export type Tick = Selectable<BillingTicksTable>;
export type Period = Selectable<BillingPeriodsTable>;
export type Refund = Selectable<UsageRefundsTable>;

/** One settlement of one pod: the totals after it, and the amounts that it adds to the provider's days. */
export type SettlementRow = Tick & {
  granted_uusd: number;
  absorbed_uusd: number;
  days: DayShare[];
  provider_id: string;
  executor_id: string;
  gpu_count: number;
  /** Fee on the paid credit in the charge; see `netFee`. */
  fee_uusd: number;
};

const SETTLEMENT = {
  pod_id: 'text',
  tick_seq: 'bigint',
  to_ms: 'bigint',
  total_uusd: 'bigint',
  provider_total_uusd: 'bigint',
  group_id: 'text',
  granted_uusd: 'bigint',
  absorbed_uusd: 'bigint',
} as const;

const DAY = {
  pod_id: 'text',
  day_ms: 'bigint',
  provider_id: 'text',
  executor_id: 'text',
  gpu_count: 'bigint',
  from_ms: 'bigint',
  to_ms: 'bigint',
  charge_uusd: 'bigint',
  net_uusd: 'bigint',
} as const;

type Rows = Slots<{ rows: string }>;

const addTicks = prepared((db, { rows }: Rows) =>
  db
    .insertInto('billing_ticks')
    .columns(['pod_id', 'tick_seq', 'to_ms', 'total_uusd', 'provider_total_uusd', 'group_id'])
    .expression((eb) =>
      eb
        .selectFrom(jsonRows(db, rows, SETTLEMENT).as('input'))
        .select(['pod_id', 'tick_seq', 'to_ms', 'total_uusd', 'provider_total_uusd', 'group_id']),
    ),
);

const advanceMeters = prepared((db, { rows }: Rows) =>
  db
    .updateTable('usage_meters')
    .from(jsonRows(db, rows, SETTLEMENT).as('input'))
    .set((eb) => ({
      charged_uusd: eb.ref('input.total_uusd'),
      provider_uusd: eb.ref('input.provider_total_uusd'),
      granted_uusd: eb.ref('input.granted_uusd'),
      absorbed_uusd: eb.ref('input.absorbed_uusd'),
      tick_seq: eb.ref('input.tick_seq'),
      settled_to_ms: eb.ref('input.to_ms'),
      hold_id: null,
    }))
    .whereRef('usage_meters.pod_id', '=', 'input.pod_id'),
);

const addToDays = prepared((db, { rows }: Rows) =>
  db
    .insertInto('billing_periods')
    .columns([
      'pod_id',
      'day_ms',
      'provider_id',
      'executor_id',
      'gpu_count',
      'from_ms',
      'to_ms',
      'billed_ms',
      'gross_uusd',
      'net_uusd',
      'refunded_gross_uusd',
      'refunded_net_uusd',
    ])
    .expression((eb) =>
      eb
        .selectFrom(jsonRows(db, rows, DAY).as('input'))
        .select((input) => [
          'pod_id',
          'day_ms',
          'provider_id',
          'executor_id',
          'gpu_count',
          'from_ms',
          'to_ms',
          input('to_ms', '-', input.ref('from_ms')).as('billed_ms'),
          'charge_uusd',
          'net_uusd',
          input.lit(0).as('refunded_gross_uusd'),
          input.lit(0).as('refunded_net_uusd'),
        ])
        .where(sql<boolean>`true`),
    )
    .onConflict((conflict) =>
      conflict.columns(['pod_id', 'day_ms']).doUpdateSet((eb) => ({
        to_ms: eb.ref('excluded.to_ms'),
        billed_ms: eb('billing_periods.billed_ms', '+', eb.ref('excluded.billed_ms')),
        gross_uusd: eb('billing_periods.gross_uusd', '+', eb.ref('excluded.gross_uusd')),
        net_uusd: eb('billing_periods.net_uusd', '+', eb.ref('excluded.net_uusd')),
      })),
    ),
);

/**
 * Writes settlements in one statement per table. The database rejects a settlement number that already exists for the
 * pod.
 */
export async function writeSettlements(db: Db, settled: readonly SettlementRow[]): Promise<void> {
  if (settled.length === 0) return;
  const rows = JSON.stringify(settled);
  await addTicks(db, { rows });
  await advanceMeters(db, { rows });
  const days = settled.flatMap(({ days: shares, pod_id, provider_id, executor_id, gpu_count }) =>
    shares.map((share) => ({ ...share, pod_id, provider_id, executor_id, gpu_count })),
  );
  await addToDays(db, { rows: JSON.stringify(days) });
  await addFees(db, settled);
}

/** Stores a refund, of which `paidUusd` was paid credit. `meter` is the pod's meter before it. */
export async function insertRefund(
  db: Db,
  refund: Refund,
  { meter, paidUusd }: { meter: Meter; paidUusd: number },
): Promise<void> {
  const paid = paidIn(meter);
  await addFees(db, [
    { executor_id: meter.executor_id, fee_uusd: netFee(paid - paidUusd) - netFee(paid) },
  ]);
  await db.insertInto('usage_refunds').values(refund).execute();
  await db
    .updateTable('usage_meters')
    .set({ refunded_uusd: refund.amount_uusd })
    .where('pod_id', '=', refund.pod_id)
    .execute();
}

/** Deducts a refund from the pod's days in the provider's billing history, latest first. */
export async function deductFromDays(db: Db, refund: Refund): Promise<void> {
  let left = { gross: refund.amount_uusd, net: refund.provider_uusd };
  const days = await db
    .selectFrom('billing_periods')
    .selectAll()
    .where('pod_id', '=', refund.pod_id)
    .orderBy('day_ms', 'desc')
    .execute();
  for (const day of days) {
    const gross = Math.min(left.gross, day.gross_uusd);
    const net = Math.min(left.net, day.net_uusd);
    left = { gross: left.gross - gross, net: left.net - net };
    if (gross === 0 && net === 0) return;
    await db
      .updateTable('billing_periods')
      .set({ refunded_gross_uusd: gross, refunded_net_uusd: net })
      .where('pod_id', '=', day.pod_id)
      .where('day_ms', '=', day.day_ms)
      .execute();
  }
}

export async function findRefund(db: Db, podId: string): Promise<Refund | undefined> {
  return db.selectFrom('usage_refunds').selectAll().where('pod_id', '=', podId).executeTakeFirst();
}

export type ListedPeriod = Period & { gpu_type: string };

/** Returns the id of the provider with this hotkey; undefined if there is none. */
export async function providerIdOf(db: Db, hotkey: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('providers')
    .select('id')
    .where('hotkey', '=', hotkey)
    .executeTakeFirst();
  return row?.id;
}

/**
 * Returns a page of days of pods, latest first, and the total number. A null `providerId` selects every provider. The
 * condition is on the table itself, because PostgreSQL would read all providers' days for a join.
 */
export async function listPeriods(
  db: Db,
  providerId: string | null,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ periods: ListedPeriod[]; total: number }> {
  let selected = db.selectFrom('billing_periods');
  if (providerId !== null) selected = selected.where('provider_id', '=', providerId);
  const rows = await selected
    .selectAll()
    .orderBy('day_ms', 'desc')
    .orderBy('pod_id')
    .limit(limit)
    .offset(offset)
    .execute();
  const { total } = await selected
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow();
  const typeOf = await gpuTypesOf(db, rows);
  const periods = rows.map((row) => ({ ...row, gpu_type: typeOf.get(row.executor_id) ?? '' }));
  return { periods, total: Number(total) };
}

/** GPU types of the nodes of these rows, by node. */
async function gpuTypesOf(
  db: Db,
  rows: readonly { executor_id: string }[],
): Promise<ReadonlyMap<string, string>> {
  if (rows.length === 0) return new Map();
  const ids = [...new Set(rows.map(({ executor_id: id }) => id))];
  const types = await db
    .selectFrom('executors')
    .select(['id', 'gpu_type'])
    .where('id', 'in', ids)
    .execute();
  return new Map(types.map(({ id, gpu_type: type }) => [id, type]));
}

export type NodeSum = {
  executor_id: string;
  gpu_type: string;
  billed_ms: number;
  gross_uusd: number;
  net_uusd: number;
};

/**
 * Sums the posted billing of a provider by node, the highest net amount first, without refunds. `sum` is the sum of all
 * nodes, and `total` their number.
 */
export async function sumByNode(
  db: Db,
  providerId: string,
  { limit, offset }: { limit: number; offset: number },
): Promise<{ nodes: NodeSum[]; sum: Omit<NodeSum, 'executor_id' | 'gpu_type'>; total: number }> {
  const own = db.selectFrom('billing_periods').where('provider_id', '=', providerId);
  const sums = await own
    .select((eb) => [
      'executor_id',
      eb.fn.sum<number>('billed_ms').as('billed_ms'),
      sql<number>`sum(gross_uusd - refunded_gross_uusd)`.as('gross_uusd'),
      sql<number>`sum(net_uusd - refunded_net_uusd)`.as('net_uusd'),
    ])
    .groupBy('executor_id')
    .execute();
  const rows = sums
    .map((row) => ({
      executor_id: row.executor_id,
      billed_ms: Number(row.billed_ms),
      gross_uusd: Number(row.gross_uusd),
      net_uusd: Number(row.net_uusd),
    }))
    .toSorted((a, b) => b.net_uusd - a.net_uusd || (a.executor_id < b.executor_id ? -1 : 1));
  const shown = rows.slice(offset, offset + limit);
  const typeOf = await gpuTypesOf(db, shown);
  const sumOf = (name: 'billed_ms' | 'gross_uusd' | 'net_uusd') =>
    rows.reduce((sum, row) => sum + row[name], 0);
  return {
    nodes: shown.map((row) => ({ ...row, gpu_type: typeOf.get(row.executor_id) ?? '' })),
    sum: {
      billed_ms: sumOf('billed_ms'),
      gross_uusd: sumOf('gross_uusd'),
      net_uusd: sumOf('net_uusd'),
    },
    total: rows.length,
  };
}
