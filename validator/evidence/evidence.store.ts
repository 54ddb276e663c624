/** Queries of evidence documents and of the heads of their chains. */
import type { Selectable } from 'kysely';
import type { EvidenceHeadRow, EvidenceRow, EvidenceTable, StoreDb } from '../store/tables.ts';
import { pack, unpack } from './packing.ts';

/** Newest document of an executor. */
export function lastEvidence(
  db: StoreDb,
  executorId: string,
): Promise<Pick<EvidenceRow, 'id' | 'seq'> | undefined> {
  return db
    .selectFrom('evidence')
    .select(['id', 'seq'])
    .where('executor_id', '=', executorId)
    .orderBy('seq', 'desc')
    .limit(1)
    .executeTakeFirst();
}

export type Dictionary = { id: number; text: string };
/** Versions whose documents resemble each other. */
export type Likeness = { program: string; check_policy_hash: string };

/** Returns the dictionary of documents of these versions; undefined before the first. */
export function findDictionary(
  db: StoreDb,
  { program, check_policy_hash }: Likeness,
): Promise<Dictionary | undefined> {
  return db
    .selectFrom('evidence_dictionaries')
    .select(['id', 'text'])
    .where('program', '=', program)
    .where('check_policy_hash', '=', check_policy_hash)
    .executeTakeFirst();
}

/** Adds a dictionary, unless another process has added one for these versions. */
export async function addDictionary(db: StoreDb, likeness: Likeness, text: string): Promise<void> {
  await db
    .insertInto('evidence_dictionaries')
    .values({ ...likeness, text })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

/** Stores a document, packed if there is a dictionary. */
export async function insertEvidence(
  db: StoreDb,
  row: EvidenceRow,
  dictionary?: Dictionary,
): Promise<void> {
  const { document } = row;
  const stored =
    dictionary === undefined
      ? { document, dictionary: null }
      : { document: pack(document, dictionary.text), dictionary: dictionary.id };
  await db
    .insertInto('evidence')
    .values({ ...row, ...stored })
    .execute();
}

export async function findEvidence(db: StoreDb, id: string): Promise<EvidenceRow | undefined> {
  const query = db.selectFrom('evidence').selectAll().where('id', '=', id);
  const [row] = await unpackRows(db, await query.execute());
  return row;
}

/** A document that cannot be unpacked has an empty text, which matches no id. */
async function unpackRows(
  db: StoreDb,
  rows: readonly Selectable<EvidenceTable>[],
): Promise<EvidenceRow[]> {
  const ids = [...new Set(rows.flatMap(({ dictionary }) => dictionary ?? []))];
  const used =
    ids.length === 0
      ? []
      : await db
          .selectFrom('evidence_dictionaries')
          .select(['id', 'text'])
          .where('id', 'in', ids)
          .execute();
  const texts = new Map(used.map(({ id, text }) => [id, text]));
  return rows.map(({ dictionary, ...row }) =>
    dictionary === null ? row : { ...row, document: textOf(row.document, texts.get(dictionary)) },
  );
}

function textOf(packed: string, dictionary: string | undefined): string {
  try {
    return dictionary === undefined ? '' : unpack(packed, dictionary);
  } catch {
    return '';
  }
}

/** Finish time of the first document in [fromMs, toMs); null if there is none. */
export async function firstEvidenceTime(
  db: StoreDb,
  fromMs: number,
  toMs: number,
): Promise<number | null> {
  const row = await db
    .selectFrom('evidence')
    .select('finished_ms')
    .where('finished_ms', '>=', fromMs)
    .where('finished_ms', '<', toMs)
    .orderBy('finished_ms')
    .limit(1)
    .executeTakeFirst();
  return row?.finished_ms ?? null;
}

/**
 * Ids of one document per executor in [fromMs, toMs): the last document that is not withheld, or else the last one.
 * Ordered by executor id.
 */
export async function decisiveEvidence(
  db: StoreDb,
  fromMs: number,
  toMs: number,
): Promise<string[]> {
  const rows = await db
    .selectFrom('evidence')
    .select(['id', 'executor_id', 'verdict'])
    .where('finished_ms', '>=', fromMs)
    .where('finished_ms', '<', toMs)
    .orderBy('executor_id')
    .orderBy('seq')
    .execute();
  const decisive = new Map<string, (typeof rows)[number]>();
  for (const row of rows) {
    const before = decisive.get(row.executor_id);
    const isDecisive = row.verdict !== 'withheld' || (before?.verdict ?? 'withheld') === 'withheld';
    if (isDecisive) decisive.set(row.executor_id, row);
  }
  return [...decisive.values()].map(({ id }) => id);
}

/** Ids of executors with documents or with a head, in order. */
export async function executorsWithEvidence(db: StoreDb): Promise<string[]> {
  const rows = await db
    .selectFrom('evidence')
    .select('executor_id')
    .union(db.selectFrom('evidence_heads').select('executor_id'))
    .orderBy('executor_id')
    .execute();
  return rows.map((row) => row.executor_id);
}

/** Next `limit` documents of an executor after `seq`. */
export async function evidenceAfter(
  db: StoreDb,
  executorId: string,
  seq: number,
  limit: number,
): Promise<EvidenceRow[]> {
  const rows = await db
    .selectFrom('evidence')
    .selectAll()
    .where('executor_id', '=', executorId)
    .where('seq', '>', seq)
    .orderBy('seq')
    .limit(limit)
    .execute();
  return unpackRows(db, rows);
}

/** Lists the documents of an executor before `seq`, newest first, without their texts. */
export function evidenceBefore(
  db: StoreDb,
  executorId: string,
  seq: number,
  limit: number,
): Promise<Pick<EvidenceRow, 'id' | 'seq' | 'finished_ms' | 'verdict'>[]> {
  return db
    .selectFrom('evidence')
    .select(['id', 'seq', 'finished_ms', 'verdict'])
    .where('executor_id', '=', executorId)
    .where('seq', '<', seq)
    .orderBy('seq', 'desc')
    .limit(limit)
    .execute();
}

/** Time of the facts of the executor's newest verdict that was posted or waits to be posted; null before the first. */
export async function lastFactsMs(db: StoreDb, executorId: string): Promise<number | null> {
  const row = await db
    .selectFrom('inspections')
    .select('facts_ms')
    .where('executor_id', '=', executorId)
    .executeTakeFirst();
  return row?.facts_ms ?? null;
}

/** Number and id of the last pruned document, and the latest finish time of the pruned documents. */
export type Pruned = { seq: number; id: string; finishedMs: number };

/**
 * Deletes the beginning of a chain: documents older than `beforeMs`, and all but the last `keep`. Returns null if none
 * was deleted.
 */
export async function pruneEvidence(
  db: StoreDb,
  executorId: string,
  { beforeMs, keep }: { beforeMs: number; keep: number },
): Promise<Pruned | null> {
  const own = db.selectFrom('evidence').where('executor_id', '=', executorId);
  const young = await own
    .select((eb) => eb.fn.min<number | null>('seq').as('seq'))
    .where('finished_ms', '>=', beforeMs)
    .executeTakeFirst();
  const last = await lastEvidence(db, executorId);
  if (last === undefined) return null;
  const first = Math.max(young?.seq ?? last.seq + 1, last.seq - keep + 1);
  const old = own.where('seq', '<', first);
  const end = await old.select(['id', 'seq']).orderBy('seq', 'desc').limit(1).executeTakeFirst();
  const latest = await old
    .select((eb) => eb.fn.max<number | null>('finished_ms').as('ms'))
    .executeTakeFirst();
  if (end === undefined) return null;
  await db
    .deleteFrom('evidence')
    .where('executor_id', '=', executorId)
    .where('seq', '<', first)
    .execute();
  return { ...end, finishedMs: latest?.ms ?? 0 };
}

export function findHead(db: StoreDb, executorId: string): Promise<EvidenceHeadRow | undefined> {
  return db
    .selectFrom('evidence_heads')
    .selectAll()
    .where('executor_id', '=', executorId)
    .executeTakeFirst();
}

/**
 * Replaces head `before`. Throws if another process changed it meanwhile, which rolls back the caller's transaction.
 */
export async function replaceHead(
  tx: StoreDb,
  row: EvidenceHeadRow,
  before: EvidenceHeadRow | undefined,
): Promise<void> {
  if (before === undefined) {
    await tx.insertInto('evidence_heads').values(row).execute();
    return;
  }
  const { numUpdatedRows } = await tx
    .updateTable('evidence_heads')
    .set(row)
    .where('executor_id', '=', row.executor_id)
    .where('signature', '=', before.signature)
    .executeTakeFirst();
  if (numUpdatedRows !== 1n) {
    throw new Error(`another process wrote evidence of ${row.executor_id} meanwhile`);
  }
}

/** Deletes heads of empty chains whose last document was pruned before `beforeMs`. */
export async function deletePrunedHeads(db: StoreDb, beforeMs: number): Promise<void> {
  await db
    .deleteFrom('evidence_heads')
    .where('pruned_ms', '<', beforeMs)
    .whereRef('first_seq', '>', 'last_seq')
    .execute();
}
