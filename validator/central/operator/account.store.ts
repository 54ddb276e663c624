/** Queries of accounts and their pods for operators. No query returns deleted accounts. */

import { type SelectQueryBuilder, sql } from 'kysely';
import { literally } from '../platform/database/like.ts';
import type { Db, Tables } from '../platform/database/tables.ts';

export type AccountSearch = { q: string; page: number; limit: number };

function matching(db: Db, q: string): SelectQueryBuilder<Tables, 'accounts', object> {
  const text = q.trim().toLowerCase();
  const part = `%${literally(text)}%`;
  return db
    .selectFrom('accounts')
    .where('deleted_at', 'is', null)
    .where((eb) =>
      eb.or([
        eb('id', '=', text),
        sql<boolean>`email_norm like ${part} escape '!'`,
        sql<boolean>`lower(name) like ${part} escape '!'`,
      ]),
    );
}

/**
 * Lists one page of the accounts whose address or name contains the text, or whose id equals the text, newest first.
 */
export async function searchAccounts(db: Db, { q, page, limit }: AccountSearch) {
  const { total } = await matching(db, q)
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow();
  const rows = await matching(db, q)
    .select(['id', 'email', 'name', 'email_verified_at', 'operator_since', 'created_at'])
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .limit(limit)
    .offset((page - 1) * limit)
    .execute();
  return { total: Number(total), rows };
}

/** Lists one page of an account's pods, newest first. `total` is the number of pods on all pages. */
export async function listPodsOf(
  db: Db,
  accountId: string,
  { page, limit }: { page: number; limit: number },
) {
  const { total } = await db
    .selectFrom('pods')
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow();
  const pods = await db
    .selectFrom('pods')
    .select([
      'pods.id',
      'pods.pod_name',
      'pods.executor_id',
      'pods.state',
      'pods.gpu_count',
      'pods.price_uusd_per_gpu_hour',
      'pods.created_at',
      'pods.ended_at',
    ])
    .where('pods.account_id', '=', accountId)
    .orderBy('pods.created_at', 'desc')
    .orderBy('pods.id')
    .limit(limit)
    .offset((page - 1) * limit)
    .execute();
  return { total: Number(total), pods };
}
