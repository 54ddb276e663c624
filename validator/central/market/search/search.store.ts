/** Queries of the search by id, name or address. Each reads rows of one account through an index. */
import { type SqlBool, sql } from 'kysely';
import { literally } from '../../platform/database/like.ts';
import type { Db } from '../../platform/database/tables.ts';

/** Maximum number of an account's newest ended pods that are searched. */
const MAX_ENDED_PODS = 1_000;

export type SearchText = {
  /** In lower case. */
  text: string;
  limit: number;
};

/** Matches a part of the column, ignoring case. */
function contains(column: 'name' | 'pod_name' | 'docker_image', text: string) {
  return sql<SqlBool>`lower(${sql.ref(column)}) like ${`%${literally(text)}%`} escape '!'`;
}

/** Live pods first, then the newest ended pods. */
export async function searchPods(db: Db, accountId: string, search: SearchText) {
  const own = db
    .selectFrom('pods')
    .select(['id', 'pod_name', 'state', 'executor_id', 'ended_at'])
    .where('account_id', '=', accountId);
  const live = await own
    .where('ended_at', 'is', null)
    .where((eb) => eb.or([eb('id', '=', search.text), contains('pod_name', search.text)]))
    .orderBy('created_at', 'desc')
    .limit(search.limit)
    .execute();
  if (live.length === search.limit) return live;
  const newest = own
    .where('ended_at', 'is not', null)
    .orderBy('ended_at', 'desc')
    .limit(MAX_ENDED_PODS);
  const ended = await db
    .selectFrom(newest.as('pods'))
    .selectAll()
    .where((eb) => eb.or([eb('id', '=', search.text), contains('pod_name', search.text)]))
    .limit(search.limit - live.length)
    .execute();
  return [...live, ...ended];
}

export function searchVolumes(db: Db, accountId: string, { text, limit }: SearchText) {
  return db
    .selectFrom('volumes')
    .select(['id', 'name'])
    .where('account_id', '=', accountId)
    .where('deleted_at', 'is', null)
    .where((eb) => eb.or([eb('id', '=', text), contains('name', text)]))
    .orderBy('name')
    .orderBy('id')
    .limit(limit)
    .execute();
}

/** Official templates and the account's own templates. */
export function searchTemplates(db: Db, accountId: string, { text, limit }: SearchText) {
  return db
    .selectFrom('templates')
    .select(['id', 'name', 'docker_image'])
    .where('deleted_at', 'is', null)
    .where((eb) => eb.or([eb('account_id', 'is', null), eb('account_id', '=', accountId)]))
    .where((eb) =>
      eb.or([eb('id', '=', text), contains('name', text), contains('docker_image', text)]),
    )
    .orderBy('name')
    .orderBy('id')
    .limit(limit)
    .execute();
}
