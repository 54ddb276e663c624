/** Queries on unfinished chat links. */
import type { Insertable, Selectable } from 'kysely';
import type { ChatLinkStatesTable } from '../../platform/database/tables/accounts.ts';
import type { Db } from '../../platform/database/tables.ts';

type LinkState = Selectable<ChatLinkStatesTable>;

/** Inserts an unfinished link and deletes the owner's expired ones. */
export async function insertLinkState(
  db: Db,
  row: Insertable<ChatLinkStatesTable>,
  nowMs: number,
): Promise<void> {
  await db
    .deleteFrom('chat_link_states')
    .where('owner_id', '=', row.owner_id)
    .where('expires_at', '<=', nowMs)
    .execute();
  await db.insertInto('chat_link_states').values(row).execute();
}

/** Counts the owner's unfinished links. */
export async function countLinkStates(db: Db, ownerId: string): Promise<number> {
  const row = await db
    .selectFrom('chat_link_states')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('owner_id', '=', ownerId)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

/** Deletes and returns an unfinished link of this owner, so that only one caller can finish it. */
export function redeemLinkState(
  db: Db,
  ownerId: string,
  stateHash: string,
): Promise<LinkState | undefined> {
  return db
    .deleteFrom('chat_link_states')
    .where('state_hash', '=', stateHash)
    .where('owner_id', '=', ownerId)
    .returningAll()
    .executeTakeFirst();
}

export async function deleteLinkStates(db: Db, ownerId: string): Promise<void> {
  await db.deleteFrom('chat_link_states').where('owner_id', '=', ownerId).execute();
}
