/** Queries of the outbox. A partition key is stored in the column `lane`. */
import { sha256Hex } from '#shared/signing/signed-request.ts';
import { columnsFrom, prepared, type Slots } from './prepared.ts';
import type { MessageKind, OutboxRow, StoreDb } from './tables.ts';

/** Maximum number of waiting messages per partition; beyond this the oldest is deleted. */
const MAX_WAITING = 100;
/** Maximum number of parked messages retained per kind. */
const MAX_PARKED = 100;

const NOT_ATTEMPTED = { attempts: 0, parked_ms: null, last_error: '' };

const removeUpTo = prepared((db, { lane, rank }: Slots<{ lane: string; rank: number }>) =>
  db
    .deleteFrom('outbox')
    .where('lane', '=', lane)
    .where('parked_ms', 'is', null)
    .where('rank', '<=', rank),
);

type NewRow = Omit<OutboxRow, 'seq' | 'attempts' | 'parked_ms' | 'last_error'>;
const MESSAGE_COLUMNS = ['kind', 'subject', 'rank', 'body', 'next_ms'] as const;
const STORED_COLUMNS = ['lane', 'made_ms', 'idempotency_key'] as const;

const insert = prepared((db, row: Slots<NewRow>) => {
  const values = columnsFrom(row, [...MESSAGE_COLUMNS, ...STORED_COLUMNS]);
  return db.insertInto('outbox').values({ ...values, ...NOT_ATTEMPTED });
});

export type Message = Pick<OutboxRow, 'kind' | 'subject' | 'rank' | 'body' | 'next_ms'> & {
  /** Messages of one partition are delivered in order, partitions in parallel. */
  partitionKey: string;
};

/**
 * Stores a message in the transaction that stores the reported fact. Deletes waiting messages of the same partition
 * whose rank is `replaces` or lower; deletes none if `replaces` is absent.
 */
export async function enqueue(
  tx: StoreDb,
  { partitionKey: lane, ...message }: Message,
  replaces?: number,
): Promise<void> {
  if (replaces !== undefined) await removeUpTo(tx, { lane, rank: replaces });
  const idempotency_key = sha256Hex(message.body);
  await insert(tx, { ...message, lane, made_ms: message.next_ms, idempotency_key });
  const surplus = await surplusOf(tx, { lane, parked: false }, MAX_WAITING);
  await removeMessages(tx, surplus);
}

type DueTimes = { nowMs: number; latestMs: number; limit: number };

const due = prepared((db, { nowMs, latestMs, limit }: Slots<DueTimes>) =>
  db
    .selectFrom('outbox as message')
    .selectAll()
    .where('parked_ms', 'is', null)
    .where((eb) => eb.or([eb('next_ms', '<=', nowMs), eb('next_ms', '>', latestMs)]))
    .where((eb) =>
      eb.not(
        eb.exists(
          eb
            .selectFrom('outbox as earlier')
            .select('earlier.seq')
            .whereRef('earlier.lane', '=', 'message.lane')
            .whereRef('earlier.seq', '<', 'message.seq')
            .where('earlier.parked_ms', 'is', null),
        ),
      ),
    )
    .orderBy('seq')
    .limit(limit),
);

/**
 * First waiting message of each partition, if it is due or if its time is after `latestMs`. At most `limit`, oldest
 * first.
 */
export async function dueMessages(
  db: StoreDb,
  { nowMs, latestMs }: { nowMs: number; latestMs: number },
  limit: number,
): Promise<OutboxRow[]> {
  return (await due(db, { nowMs, latestMs, limit })).rows;
}

export async function countMessages(db: StoreDb): Promise<{ waiting: number; parked: number }> {
  const { total, parked } = await db
    .selectFrom('outbox')
    .select((eb) => [
      eb.fn.countAll<number>().as('total'),
      eb.fn.count<number>('parked_ms').as('parked'),
    ])
    .executeTakeFirstOrThrow();
  return { waiting: total - parked, parked };
}

/** Time at which the oldest waiting message was stored; null if no message waits. */
export async function oldestMessageMs(db: StoreDb): Promise<number | null> {
  const row = await db
    .selectFrom('outbox')
    .select('made_ms')
    .where('parked_ms', 'is', null)
    .orderBy('seq')
    .limit(1)
    .executeTakeFirst();
  return row?.made_ms ?? null;
}

export async function removeMessage(db: StoreDb, seq: number): Promise<void> {
  await removeMessages(db, [seq]);
}

export async function postponeMessage(
  db: StoreDb,
  { seq, attempts }: Pick<OutboxRow, 'seq' | 'attempts'>,
  { nextMs, reason }: { nextMs: number; reason: string },
): Promise<void> {
  await db
    .updateTable('outbox')
    .set({ attempts, next_ms: nextMs, last_error: reason })
    .where('seq', '=', seq)
    .execute();
}

/** Parks a message. A parked message no longer delays its partition. */
export async function parkMessage(
  db: StoreDb,
  { seq, kind, attempts }: Pick<OutboxRow, 'seq' | 'kind' | 'attempts'>,
  { parkedMs, reason }: { parkedMs: number; reason: string },
): Promise<void> {
  await db
    .updateTable('outbox')
    .set({ attempts, parked_ms: parkedMs, last_error: reason })
    .where('seq', '=', seq)
    .execute();
  await removeMessages(db, await surplusOf(db, { kind, parked: true }, MAX_PARKED));
}

type Group = { parked: false; lane: string } | { parked: true; kind: MessageKind };

const waitingIn = prepared((db, { lane, keep }: Slots<{ lane: string; keep: number }>) =>
  db
    .selectFrom('outbox')
    .select('seq')
    .where('lane', '=', lane)
    .where('parked_ms', 'is', null)
    .orderBy('lane', 'desc')
    .orderBy('seq', 'desc')
    .limit(keep)
    .offset(keep),
);

const parkedOf = prepared((db, { kind, keep }: Slots<{ kind: MessageKind; keep: number }>) =>
  db
    .selectFrom('outbox')
    .select('seq')
    .where('kind', '=', kind)
    .where('parked_ms', 'is not', null)
    .orderBy('seq', 'desc')
    .limit(keep)
    .offset(keep),
);

/** Sequence numbers of up to `keep` messages that are older than the newest `keep` of the group. */
async function surplusOf(db: StoreDb, group: Group, keep: number): Promise<number[]> {
  const { rows } = group.parked
    ? await parkedOf(db, { kind: group.kind, keep })
    : await waitingIn(db, { lane: group.lane, keep });
  return rows.map(({ seq }) => seq);
}

const remove = prepared((db, { seq }: Slots<{ seq: number }>) =>
  db.deleteFrom('outbox').where('seq', '=', seq),
);

async function removeMessages(db: StoreDb, seqs: readonly number[]): Promise<void> {
  for (const seq of seqs) await remove(db, { seq });
}
