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

/** How many wait to be told, and how many were given up. */
export async function countLetters(db: LedgerDb): Promise<{ waiting: number; parked: number }> {
  const { total, parked } = await db
    .selectFrom('outbox')
    .select((eb) => [
      eb.fn.countAll<number>().as('total'),
      eb.fn.count<number>('parked_ms').as('parked'),
    ])
    .executeTakeFirstOrThrow();
  return { waiting: total - parked, parked };
}

/** Since when the first of those that wait does: what it tells of was computed then. Null when none waits. */
export async function oldestLetterMs(db: LedgerDb): Promise<number | null> {
  const row = await db
    .selectFrom('outbox')
    .innerJoin('epochs', 'epochs.number', 'outbox.subject')
    .select('epochs.computed_ms')
    .where('outbox.parked_ms', 'is', null)
    .orderBy('outbox.seq')
    .limit(1)
    .executeTakeFirst();
  return row?.computed_ms ?? null;
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
