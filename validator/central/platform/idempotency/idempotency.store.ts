/** Queries on idempotency claims. */

import type { ExpressionBuilder, Selectable } from 'kysely';
import { sealed } from '../database/sealed-columns.ts';
import type { IdempotencyTable } from '../database/tables/platform.ts';
import type { Db, Tables } from '../database/tables.ts';

export type Claim = Selectable<IdempotencyTable>;
export type ClaimScope = Pick<Claim, 'account_id' | 'route' | 'key'>;

function scoped({ account_id, route, key }: ClaimScope) {
  return (eb: ExpressionBuilder<Tables, 'idempotency'>) => eb.and({ account_id, route, key });
}

export async function findClaim(db: Db, scope: ClaimScope): Promise<Claim | undefined> {
  return db.selectFrom('idempotency').selectAll().where(scoped(scope)).executeTakeFirst();
}

/** Inserts a claim. Returns false if a claim for the same scope exists. */
export async function insertClaim(db: Db, claim: Claim): Promise<boolean> {
  const done = await db
    .insertInto('idempotency')
    .values(claim)
    .onConflict((conflict) => conflict.doNothing())
    .executeTakeFirst();
  return (done.numInsertedOrUpdatedRows ?? 0n) > 0n;
}

/** Stores the response if the claim still belongs to a running request of this process; otherwise returns false. */
export async function finishClaim(
  db: Db,
  scope: ClaimScope,
  bootId: string,
  answer: { status: number; body: string },
): Promise<boolean> {
  const done = await db
    .updateTable('idempotency')
    .set(sealed(db, { ...answer, state: 'finished' as const }))
    .where(scoped(scope))
    .where('state', '=', 'running')
    .where('boot_id', '=', bootId)
    .executeTakeFirst();
  return done.numUpdatedRows > 0n;
}

/** Deletes a running claim of `bootId`, so that a retry runs the request again. */
export async function dropClaim(db: Db, scope: ClaimScope, bootId: string): Promise<void> {
  await db
    .deleteFrom('idempotency')
    .where(scoped(scope))
    .where('state', '=', 'running')
    .where('boot_id', '=', bootId)
    .execute();
}

/** Deletes claims made at or before `untilMs`: all of them, or the one in `scope`. */
export async function dropExpired(db: Db, untilMs: number, scope?: ClaimScope): Promise<void> {
  await db
    .deleteFrom('idempotency')
    .where('created_at', '<=', untilMs)
    .$if(scope !== undefined, (query) => (scope === undefined ? query : query.where(scoped(scope))))
    .execute();
}
