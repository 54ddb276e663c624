/** All queries on templates. Deleted templates are kept as rows and are never found. */

import { type Insertable, sql, type Updateable } from 'kysely';
import { literally } from '../../platform/database/like.ts';
import { prepared, type Slots } from '../../platform/database/prepared.ts';
import { sealed } from '../../platform/database/sealed-columns.ts';
import type { TemplatesTable } from '../../platform/database/tables/market.ts';
import type { Db, Template } from '../../platform/database/tables.ts';

export async function insertTemplate(db: Db, row: Insertable<TemplatesTable>): Promise<void> {
  await db.insertInto('templates').values(sealed(db, row)).execute();
}

/** Inserts the template, or replaces the template with its id. */
export async function putTemplate(db: Db, row: Insertable<TemplatesTable>): Promise<void> {
  const values = sealed(db, row);
  const { id: _, created_at: __, ...changes } = values;
  await db
    .insertInto('templates')
    .values(values)
    .onConflict((conflict) => conflict.column('id').doUpdateSet(changes))
    .execute();
}

const byId = prepared((db, { id }: Slots<{ id: string }>) =>
  db.selectFrom('templates').selectAll().where('id', '=', id).where('deleted_at', 'is', null),
);

/** Finds a template of any account. */
export async function findTemplate(db: Db, id: string): Promise<Template | undefined> {
  return (await byId(db, { id })).rows[0];
}

export type TemplateSearch = {
  /** Words, each of which must be in the name, image, description or tags. */
  q?: string;
  owner?: 'official' | 'own' | 'shared' | undefined;
  /** Number of the page, from 1. */
  page?: number;
  /** Templates per page; without it, all. */
  limit?: number | undefined;
};

/**
 * Official templates first, then public and own templates, oldest first. One-time and temporary templates of other
 * accounts are not listed.
 */
export function listTemplates(
  db: Db,
  accountId: string | null,
  { q = '', owner, page = 1, limit }: TemplateSearch,
): Promise<Template[]> {
  let query = db
    .selectFrom('templates')
    .selectAll()
    .where('deleted_at', 'is', null)
    .where((where) =>
      where.or([
        where.and([
          where('is_private', '=', 0),
          where('one_time_template', '=', 0),
          where('is_temporary', '=', 0),
        ]),
        ...(accountId === null ? [] : [where('account_id', '=', accountId)]),
      ]),
    )
    .orderBy((order) => order.case().when('account_id', 'is', null).then(0).else(1).end())
    .orderBy('created_at')
    .orderBy('id');
  if (owner === 'official') query = query.where('account_id', 'is', null);
  // Without an account, no template is the account's.
  if (owner === 'own') query = query.where('account_id', '=', accountId ?? '');
  if (owner === 'shared') {
    query = query.where('account_id', 'is not', null).where('account_id', '<>', accountId ?? '');
  }
  for (const word of q.toLowerCase().split(/\s+/)) {
    if (word !== '') query = query.where(contains(word));
  }
  return limit === undefined
    ? query.execute()
    : query
        .offset((page - 1) * limit)
        .limit(limit)
        .execute();
}

function contains(word: string) {
  return sql<boolean>`lower(name || ' ' || docker_image || ' ' || description || ' ' || tags_json)
    like ${`%${literally(word)}%`} escape '!'`;
}

/** Number of templates that the account created since then, including deleted templates. */
export async function countTemplatesSince(
  db: Db,
  accountId: string,
  sinceMs: number,
): Promise<number> {
  const { count } = await db
    .selectFrom('templates')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('account_id', '=', accountId)
    .where('created_at', '>', sinceMs)
    .executeTakeFirstOrThrow();
  return Number(count);
}

/** Returns false if the template was deleted. */
export async function updateTemplate(
  db: Db,
  id: string,
  changes: Updateable<TemplatesTable>,
): Promise<boolean> {
  const result = await db
    .updateTable('templates')
    .set(sealed(db, changes))
    .where('id', '=', id)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Marks the template as used. Returns false if it was used before. */
export async function useTemplate(db: Db, id: string, nowMs: number): Promise<boolean> {
  const result = await db
    .updateTable('templates')
    .set({ used_at: nowMs })
    .where('id', '=', id)
    .where('used_at', 'is', null)
    .executeTakeFirst();
  return result.numUpdatedRows > 0n;
}

/** Deletes every template of an account and erases its content. */
export async function deleteTemplatesOf(db: Db, accountId: string, nowMs: number): Promise<void> {
  await db
    .updateTable('templates')
    .set({
      deleted_at: nowMs,
      name: '',
      description: '',
      readme: '',
      tags_json: '[]',
      environment_json: '{}',
      entrypoint: '',
      startup_commands: '',
    })
    .where('account_id', '=', accountId)
    .execute();
}
