/** The filters of the market as conditions of queries (contract 3.1). */
import { type RawBuilder, sql } from 'kysely';
import { usdToMicro } from '#shared/money.ts';
import { listOf } from './executor.filters.ts';
import type { ExecutorListQuery } from './executor.schemas.ts';
import type { MarketCondition } from './market.store.ts';
import type { NodeNotes } from './node-notes.ts';

/** No price of ours is higher; a bound beyond it would be no integer of the database's. */
const MAX_USD = 1_000_000_000;

const MINIMUM = sql`coalesce(min_gpu_count,
  case when slots_total > 0 then slots_total else executors.gpu_count end)`;
/** Enough GPUs are free for at least one rental. */
export const ROOM: MarketCondition = {
  name: 'offered',
  holds: sql<boolean>`slots_free >= 1 and slots_free >= ${MINIMUM}`,
};

const NONE = sql<boolean>`1 = 0`;
const ALL = sql<boolean>`1 = 1`;

/** In the order of the filters in executor.filters.ts; a machine request is taken for one that is not the caller's. */
export function conditionsOf(
  query: ExecutorListQuery,
  { bookmarked }: Pick<NodeNotes, 'bookmarked'>,
): MarketCondition[] {
  const conditions: MarketCondition[] = [];
  const add = <V>(name: string, value: V | undefined, holds: (value: V) => RawBuilder<boolean>) => {
    if (value !== undefined) conditions.push({ name, holds: holds(value) });
  };
  const price = sql.ref('price_uusd_per_gpu_hour');
  add('machine_names', query.machine_names, (names) => {
    const listed = sql.join(listOf(names));
    return sql<boolean>`coalesce(machine_name, gpu_type) in (${listed})`;
  });
  add('price_lte', query.price_lte, (usd) => sql<boolean>`${price} <= ${boundOf(usd)}`);
  add('price_gte', query.price_gte, (usd) => sql<boolean>`${price} >= ${boundOf(usd)}`);
  add('gpu_count_lte', query.gpu_count_lte, (count) => sql<boolean>`slots_free <= ${count}`);
  add('gpu_count_gte', query.gpu_count_gte, (count) => sql<boolean>`slots_free >= ${count}`);
  add('bookmarked', query.bookmarked, (wanted) => isAmong(bookmarked, wanted));
  add('machine_request_id', query.machine_request_id, () => NONE);
  add(
    'collateral_deposited',
    query.collateral_deposited,
    (wanted) => sql<boolean>`collateral_deposited = ${wanted ? 1 : 0}`,
  );
  add('nvlink', query.nvlink, (wanted) => sql<boolean>`coalesce(nvlink, 0) = ${wanted ? 1 : 0}`);
  return conditions;
}

/** Few enough for a list: an account's bookmarks are bounded. */
function isAmong(ids: ReadonlySet<string>, wanted: boolean): RawBuilder<boolean> {
  if (ids.size === 0) return wanted ? NONE : ALL;
  const listed = sql.join([...ids]);
  return wanted
    ? sql<boolean>`executors.id in (${listed})`
    : sql<boolean>`executors.id not in (${listed})`;
}

function boundOf(usd: number): number {
  return usdToMicro(Math.max(-MAX_USD, Math.min(usd, MAX_USD)));
}
