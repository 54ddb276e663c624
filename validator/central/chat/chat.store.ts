/** Queries behind links to the chat platform. */
import type { Insertable, Selectable } from 'kysely';
import type { ChatLinkStatesTable } from '../db/accounts.tables.ts';
import type { Db } from '../db/tables.ts';

type LinkState = Selectable<ChatLinkStatesTable>;

/** Stores the beginning of a link, and drops those of this account that ran out. */
export async function insertLinkState(
  db: Db,
  row: Insertable<ChatLinkStatesTable>,
  nowMs: number,
): Promise<void> {
  await db
    .deleteFrom('chat_link_states')
    .where('account_id', '=', row.account_id)
    .where('expires_at', '<=', nowMs)
    .execute();
  await db.insertInto('chat_link_states').values(row).execute();
}

/** How many links an account has begun and not finished. */
export async function countLinkStates(db: Db, accountId: string): Promise<number> {
  const row = await db
    .selectFrom('chat_link_states')
    .select((select) => select.fn.countAll<number>().as('count'))
    .where('account_id', '=', accountId)
    .executeTakeFirstOrThrow();
  return Number(row.count);
}

/** Takes the beginning of a link of this account away: whoever gets it is the only one. */
export function takeLinkState(
  db: Db,
  accountId: string,
  stateHash: string,
): Promise<LinkState | undefined> {
  return db
    .deleteFrom('chat_link_states')
    .where('state_hash', '=', stateHash)
    .where('account_id', '=', accountId)
    .returningAll()
    .executeTakeFirst();
}

/** Everything an account has begun. */
export async function deleteLinkStates(db: Db, accountId: string): Promise<void> {
  await db.deleteFrom('chat_link_states').where('account_id', '=', accountId).execute();
}
