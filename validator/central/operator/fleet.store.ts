/** Queries of nodes and providers for operators, one page at a time. */
import { type SelectQueryBuilder, type Simplify, sql } from 'kysely';
import { literally } from '../platform/database/like.ts';
import type { Db, Tables } from '../platform/database/tables.ts';

/**
 * Values that state whether a node can be rented: the first obstacle of `rentalObstacles`
 * (market/executors/executor.service.ts), in the same order. Removed nodes have a separate value.
 */
export const NODE_OFFERS = [
  'rentable',
  'provider_banned',
  'node_paused_by_provider',
  'node_not_verified',
  'node_unavailable',
  'gpu_count_invalid',
  'removed',
] as const;
export type NodeOffer = (typeof NODE_OFFERS)[number];

const OFFER = sql<NodeOffer>`case
  when executors.state = 'removed' then 'removed'
  when providers.banned_at is not null then 'provider_banned'
  when executors.paused = 1 or providers.opted_in = 0 then 'node_paused_by_provider'
  when executors.unknown_pods > 0 then 'node_unavailable'
  when executors.state <> 'verified' then 'node_not_verified'
  when executors.slots_free = 0 then 'node_unavailable'
  when executors.slots_free < coalesce(executors.min_gpu_count, executors.slots_total) then 'gpu_count_invalid'
  else 'rentable' end`;

/**
 * `state <> 'removed'` in a form with which SQLite scans an index that has all columns, and not the index of addresses.
 */
const PRESENT = sql<boolean>`${OFFER} <> 'removed'`;

export type FleetSearch = {
  q: string;
  offer: NodeOffer | undefined;
  /** True for only nodes with free GPUs; false for only nodes without free GPUs. */
  free: boolean | undefined;
  /** Only nodes without a verdict since this time. */
  uncheckedSinceMs: number | undefined;
  page: number;
  limit: number;
};

type Joined = SelectQueryBuilder<Tables, 'executors' | 'providers', object>;

function matching(db: Db, { q, offer, free, uncheckedSinceMs }: FleetSearch): Joined {
  const text = q.trim();
  let found: Joined = db
    .selectFrom('executors')
    .innerJoin('providers', 'providers.id', 'executors.provider_id');
  if (text !== '') {
    found = found.where((eb) =>
      eb.or([
        eb('executors.id', '=', text.toLowerCase()),
        eb('ip_address', '=', text),
        eb('providers.hotkey', '=', text),
        sql<boolean>`lower(coalesce(machine_name, gpu_type)) like ${`%${literally(text.toLowerCase())}%`} escape '!'`,
      ]),
    );
  }
  if (free !== undefined) found = found.where('slots_free', free ? '>' : '=', 0);
  if (uncheckedSinceMs !== undefined) {
    found = found.where((eb) =>
      eb.or([eb('verdict_at', 'is', null), eb('verdict_at', '<=', uncheckedSinceMs)]),
    );
  }
  return offer === undefined ? found.where(PRESENT) : found.where(OFFER, '=', offer);
}

/**
 * Lists nodes with the columns that a response contains, ordered by id. `total` is the number of nodes on all pages.
 * The query selects the ids first, because an index has all columns of the filters, while a row of the table has the
 * inventory and is long.
 */
export async function searchFleet(db: Db, search: FleetSearch) {
  const { page, limit } = search;
  const { total } = await matching(db, search)
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow();
  const ids = matching(db, search)
    .select('executors.id')
    .orderBy('executors.id')
    .limit(limit)
    .offset((page - 1) * limit);
  const rows = await db
    .selectFrom('executors')
    .innerJoin('providers', 'providers.id', 'executors.provider_id')
    .where('executors.id', 'in', ids)
    .select(['executors.id', 'provider_id', 'ip_address', 'port', 'gpu_type', 'machine_name'])
    .select(['gpu_count', 'slots_total', 'slots_free', 'min_gpu_count', 'price_uusd_per_gpu_hour'])
    .select([
      'state',
      'paused',
      'unknown_pods',
      'validator_hotkey',
      'verdict_at',
      'last_seen_at',
      'simulated',
    ])
    .select(['executors.created_at', 'providers.hotkey', 'providers.opted_in'])
    .select(['providers.banned_at', OFFER.as('offer')])
    .orderBy('executors.id')
    .execute();
  return { total: Number(total), rows };
}
export type FleetRow = Simplify<Awaited<ReturnType<typeof searchFleet>>['rows'][number]>;

/** Lists the GPU slots of these nodes, in the order of the cards. */
export async function slotsOf(db: Db, executorIds: readonly string[]) {
  if (executorIds.length === 0) return [];
  return db
    .selectFrom('gpu_slots')
    .select(['executor_id', 'idx', 'pod_id'])
    .where('executor_id', 'in', executorIds)
    .orderBy('executor_id')
    .orderBy('idx')
    .execute();
}

/** Counts nodes and GPUs by offer, without removed nodes. */
export async function countFleet(db: Db) {
  const rows = await db
    .selectFrom('executors')
    .innerJoin('providers', 'providers.id', 'executors.provider_id')
    .select((eb) => [
      OFFER.as('offer'),
      eb.fn.countAll<number>().as('nodes'),
      eb.fn.sum<number>('slots_total').as('gpus'),
      eb.fn.sum<number>('slots_free').as('free'),
    ])
    .where(PRESENT)
    .groupBy(OFFER)
    .execute();
  return rows.map(({ offer, nodes, gpus, free }) => ({
    offer,
    nodes: Number(nodes),
    gpus: Number(gpus),
    free: Number(free),
  }));
}

export type ProviderSearch = {
  q: string;
  banned: boolean | undefined;
  page: number;
  limit: number;
};

function providersMatching(db: Db, { q, banned }: ProviderSearch) {
  const text = q.trim();
  let found = db.selectFrom('providers');
  if (text !== '') {
    found = found.where((eb) =>
      eb.or([
        eb('id', '=', text.toLowerCase()),
        eb('hotkey', '=', text),
        eb('coldkey', '=', text),
        sql<boolean>`lower(email) like ${`%${literally(text.toLowerCase())}%`} escape '!'`,
      ]),
    );
  }
  if (banned === undefined) return found;
  return found.where('banned_at', banned ? 'is not' : 'is', null);
}

/** Lists providers, newest first. `total` is the number of providers on all pages. */
export async function searchProviders(db: Db, search: ProviderSearch) {
  const { page, limit } = search;
  const { total } = await providersMatching(db, search)
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow();
  const rows = await providersMatching(db, search)
    .select(['id', 'hotkey', 'coldkey', 'email', 'opted_in', 'banned_at', 'created_at'])
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(limit)
    .offset((page - 1) * limit)
    .execute();
  return { total: Number(total), rows };
}

/** Numbers of nodes and GPUs of these providers, without removed nodes. Providers without nodes are omitted. */
export async function countNodesOf(db: Db, providerIds: readonly string[]) {
  if (providerIds.length === 0) return [];
  const rows = await db
    .selectFrom('executors')
    .select((eb) => [
      'provider_id',
      eb.fn.countAll<number>().as('nodes'),
      eb.fn.sum<number>('slots_total').as('gpus'),
      eb.fn.sum<number>('slots_free').as('free'),
    ])
    .where('provider_id', 'in', providerIds)
    .where('state', '<>', 'removed')
    .groupBy('provider_id')
    .execute();
  return rows.map(({ provider_id, nodes, gpus, free }) => ({
    provider_id,
    nodes: Number(nodes),
    gpus: Number(gpus),
    free: Number(free),
  }));
}
