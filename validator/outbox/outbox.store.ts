/** Queries of the outbox. */
import type { LedgerDb, OutboxRow } from '../ledger/ledger.tables.ts';

/** More are not kept waiting: of what was not told, the oldest is forgotten. */
const MAX_WAITING = 100;
/** Of what was given up, so many stay for people to see. */
const MAX_PARKED = 100;

export type Letter = Pick<OutboxRow, 'kind' | 'subject' | 'body' | 'next_ms'>;

/** In the transaction of the fact that it tells of. */
export async function enqueue(tx: LedgerDb, letter: Letter): Promise<void> {
  await tx
    .insertInto('outbox')
    .values({ ...letter, attempts: 0, parked_ms: null, last_error: '' })
    .execute();
  await keepNewest(tx, 'waiting', MAX_WAITING);
}

/** The first of those that are neither told nor given up. */
export function nextLetter(db: LedgerDb): Promise<OutboxRow | undefined> {
  return db
    .selectFrom('outbox')
    .selectAll()
    .where('parked_ms', 'is', null)
    .orderBy('seq')
    .limit(1)
    .executeTakeFirst();
}

/** It was told. */
export async function removeLetter(db: LedgerDb, seq: number): Promise<void> {
  await db.deleteFrom('outbox').where('seq', '=', seq).execute();
}

/** It is to be told again at `nextMs`. */
export async function postponeLetter(
  db: LedgerDb,
  { seq, attempts }: Pick<OutboxRow, 'seq' | 'attempts'>,
  { nextMs, reason }: { nextMs: number; reason: string },
): Promise<void> {
  await db
    .updateTable('outbox')
    .set({ attempts, next_ms: nextMs, last_error: reason })
    .where('seq', '=', seq)
    .execute();
}

/** It is given up, and in nobody's way any more. */
export async function parkLetter(
  db: LedgerDb,
  { seq, attempts }: Pick<OutboxRow, 'seq' | 'attempts'>,
  { parkedMs, reason }: { parkedMs: number; reason: string },
): Promise<void> {
  await db
    .updateTable('outbox')
    .set({ attempts, parked_ms: parkedMs, last_error: reason })
    .where('seq', '=', seq)
    .execute();
  await keepNewest(db, 'parked', MAX_PARKED);
}

async function keepNewest(db: LedgerDb, which: 'waiting' | 'parked', count: number) {
  const parked = which === 'parked' ? ('is not' as const) : ('is' as const);
  const surplus = await db
    .selectFrom('outbox')
    .select('seq')
    .where('parked_ms', parked, null)
    .orderBy('seq', 'desc')
    .limit(1)
    .offset(count)
    .executeTakeFirst();
  if (surplus === undefined) return;
  await db
    .deleteFrom('outbox')
    .where('parked_ms', parked, null)
    .where('seq', '<=', surplus.seq)
    .execute();
}
