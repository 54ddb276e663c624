/** Queries of the published key sets. */
import { chainOf, SignedRootKeySet } from '#shared/updates/root-key-set.ts';
import type { StoreDb } from '../store/tables.ts';

/** Returns the key sets that agents need, oldest first. */
export async function publishedChain(db: StoreDb): Promise<SignedRootKeySet[]> {
  const rows = await db.selectFrom('key_sets').select('signed_json').orderBy('sequence').execute();
  return chainOf(rows.map((row) => SignedRootKeySet.parse(JSON.parse(row.signed_json))));
}

/** Rejects if a set of the sequence is already published. */
export async function addKeySet(
  tx: StoreDb,
  signed: SignedRootKeySet,
  publishedMs: number,
): Promise<void> {
  await tx
    .insertInto('key_sets')
    .values({
      sequence: signed.key_set.sequence,
      signed_json: JSON.stringify(signed),
      published_ms: publishedMs,
    })
    .execute();
}
