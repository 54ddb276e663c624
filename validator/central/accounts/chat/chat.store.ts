/** Queries behind links to the chat platform. */

import type { Insertable, Selectable } from 'kysely';
import type { ChatLinkStatesTable } from '../../platform/database/tables/accounts.ts';
import type { Db } from '../../platform/database/tables.ts';

type LinkState = Selectable<ChatLinkStatesTable>;

/** Stores the beginning of a link, and drops those of this owner that ran out. */
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

/** How many links an owner has begun and not finished. */
export async function countLinkStates(db: Db, ownerId: string): Promise<number> {
  const row = await db
    .selectFrom('chat_link_states')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('owner_id', '=', ownerId)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

/** Takes the beginning of a link of this owner away: whoever gets it is the only one. */
export function takeLinkState(
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

/** Everything an owner has begun. */
export async function deleteLinkStates(db: Db, ownerId: string): Promise<void> {
  await db.deleteFrom('chat_link_states').where('owner_id', '=', ownerId).execute();
}
