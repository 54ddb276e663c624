/** Queries of the provider_tokens table. */

import type { Selectable } from 'kysely';
import { prepared, type Slots } from '../platform/database/prepared.ts';
import type { ProviderTokensTable } from '../platform/database/tables/executors.ts';
import type { Db } from '../platform/database/tables.ts';

export type ProviderToken = Selectable<ProviderTokensTable>;

const byHash = prepared((db, { hash }: Slots<{ hash: string }>) =>
  db
    .selectFrom('provider_tokens')
    .innerJoin('providers', 'providers.id', 'provider_tokens.provider_id')
    .selectAll('provider_tokens')
    .select('providers.hotkey')
    .where('token_hash', '=', hash),
);

/** Finds a token and its provider's hotkey by the hash of the token. Also returns expired tokens. */
export async function findProviderToken(
  db: Db,
  hash: string,
): Promise<(ProviderToken & { hotkey: string }) | undefined> {
  return (await byHash(db, { hash })).rows[0];
}

/** Lists a provider's tokens, newest first. */
export function listProviderTokens(db: Db, providerId: string): Promise<ProviderToken[]> {
  return db
    .selectFrom('provider_tokens')
    .selectAll()
    .where('provider_id', '=', providerId)
    .orderBy('created_at', 'desc')
    .orderBy('id')
    .execute();
}

export async function insertProviderToken(db: Db, row: ProviderToken): Promise<void> {
  await db.insertInto('provider_tokens').values(row).execute();
}

/** Deletes a token and returns it; undefined if the provider has no such token. */
export function deleteProviderToken(
  db: Db,
  providerId: string,
  id: string,
): Promise<ProviderToken | undefined> {
  return db
    .deleteFrom('provider_tokens')
    .where('id', '=', id)
    .where('provider_id', '=', providerId)
    .returningAll()
    .executeTakeFirst();
}

type Touch = { id: string; nowMs: number; staleMs: number };

const touch = prepared((db, { id, nowMs, staleMs }: Slots<Touch>) =>
  db
    .updateTable('provider_tokens')
    .set({ last_used_at: nowMs })
    .where('id', '=', id)
    .where((eb) => eb.or([eb('last_used_at', 'is', null), eb('last_used_at', '<=', staleMs)])),
);

/** Records a use at `nowMs` unless a use after `staleMs` is already recorded. */
export async function touchProviderToken(
  db: Db,
  id: string,
  nowMs: number,
  staleMs: number,
): Promise<void> {
  await touch(db, { id, nowMs, staleMs });
}
