/** Queries of the outbox. */
import { sha256Hex } from '#shared/signing/signed-request.ts';
import type { LedgerDb, LetterKind, OutboxRow } from '../ledger.tables.ts';

/** More do not wait in one lane: of what was not told, the oldest is forgotten. */
const MAX_WAITING = 100;
/** Of what was given up of one kind, so many stay for people to see. */
const MAX_PARKED = 100;

const UNTOLD = { attempts: 0, parked_ms: null, last_error: '' };

export type Letter = Pick<OutboxRow, 'kind' | 'subject' | 'lane' | 'rank' | 'body' | 'next_ms'>;

/**
 * In the transaction of the fact that it tells of. It takes the place of what waits in its lane with the rank
 * `replaces` or a lower one; of nothing when that is left out.
 */
export async function enqueue(tx: LedgerDb, letter: Letter, replaces?: number): Promise<void> {
  if (replaces !== undefined) {
    await tx
      .deleteFrom('outbox')
      .where('lane', '=', letter.lane)
      .where('parked_ms', 'is', null)
      .where('rank', '<=', replaces)
      .execute();
  }
  const idempotency_key = sha256Hex(letter.body);
  await tx
    .insertInto('outbox')
    .values({ ...letter, made_ms: letter.next_ms, idempotency_key, ...UNTOLD })
    .execute();
  const waiting = await surplusOf(tx, { lane: letter.lane, parked: false }, MAX_WAITING);
  await removeLetters(tx, waiting);
}

/** Of each lane the first that is neither told nor given up, where its time has come; the oldest `limit` of them. */
export function dueLetters(
  db: LedgerDb,
  { nowMs, latestMs }: { nowMs: number; latestMs: number },
  limit: number,
): Promise<OutboxRow[]> {
  return db
    .selectFrom('outbox as letter')
    .selectAll()
    .where('parked_ms', 'is', null)
    .where((eb) => eb.or([eb('next_ms', '<=', nowMs), eb('next_ms', '>', latestMs)]))
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('outbox as earlier')
            .select('earlier.seq')
            .whereRef('earlier.lane', '=', 'letter.lane')
            .whereRef('earlier.seq', '<', 'letter.seq')
            .where('earlier.parked_ms', 'is', null),
        ),
      ),
    )
    .orderBy('seq')
    .limit(limit)
    .execute();
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

/** Since when the first of those that wait does; null when none does. */
export async function oldestLetterMs(db: LedgerDb): Promise<number | null> {
  const row = await db
    .selectFrom('outbox')
    .select('made_ms')
    .where('parked_ms', 'is', null)
    .orderBy('seq')
    .limit(1)
    .executeTakeFirst();
  return row?.made_ms ?? null;
}

/** It was told. */
export async function removeLetter(db: LedgerDb, seq: number): Promise<void> {
  await removeLetters(db, [seq]);
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
  { seq, kind, attempts }: Pick<OutboxRow, 'seq' | 'kind' | 'attempts'>,
  { parkedMs, reason }: { parkedMs: number; reason: string },
): Promise<void> {
  await db
    .updateTable('outbox')
    .set({ attempts, parked_ms: parkedMs, last_error: reason })
    .where('seq', '=', seq)
    .execute();
  await removeLetters(db, await surplusOf(db, { kind, parked: true }, MAX_PARKED));
}

type Group = { parked: false; lane: string } | { parked: true; kind: LetterKind };

/** The numbers of all but the newest `keep`. */
async function surplusOf(db: LedgerDb, group: Group, keep: number): Promise<number[]> {
  const all = db.selectFrom('outbox').select('seq');
  const own = group.parked
    ? all.where('kind', '=', group.kind).where('parked_ms', 'is not', null)
    : all.where('lane', '=', group.lane).where('parked_ms', 'is', null);
  const rows = await own.orderBy('seq', 'desc').limit(keep).offset(keep).execute();
  return rows.map(({ seq }) => seq);
}

async function removeLetters(db: LedgerDb, seqs: readonly number[]): Promise<void> {
  if (seqs.length === 0) return;
  await db
    .deleteFrom('outbox')
    .where('seq', 'in', [...seqs])
    .execute();
}
