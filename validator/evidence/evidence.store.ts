/** Queries of evidence documents and of the heads of their chains. */
import type { Selectable } from 'kysely';
import { columnsFrom, prepared, type Slots } from '../store/prepared.ts';
import type {
  EvidenceHeadRow,
  EvidenceRow,
  EvidenceTable,
  PassedDocumentsTable,
  StoreDb,
} from '../store/tables.ts';
import { pack, unpack } from './packing.ts';

type OfExecutor = Slots<{ executorId: string }>;

const newestOf = prepared((db, { executorId }: OfExecutor) =>
  db
    .selectFrom('evidence')
    .select(['id', 'seq'])
    .where('executor_id', '=', executorId)
    .orderBy('seq', 'desc')
    .limit(1),
);

/** Newest document of an executor. */
export async function lastEvidence(
  db: StoreDb,
  executorId: string,
): Promise<Pick<EvidenceRow, 'id' | 'seq'> | undefined> {
  return (await newestOf(db, { executorId })).rows[0];
}

export type Dictionary = { id: number; text: string };
/** Versions whose documents resemble each other. */
export type Likeness = { program: string; check_policy_hash: string };

const dictionaryOf = prepared((db, { program, check_policy_hash }: Slots<Likeness>) =>
  db
    .selectFrom('evidence_dictionaries')
    .select(['id', 'text'])
    .where('program', '=', program)
    .where('check_policy_hash', '=', check_policy_hash),
);

/** Returns the dictionary of documents of these versions; undefined before the first. */
export async function findDictionary(
  db: StoreDb,
  { program, check_policy_hash }: Likeness,
): Promise<Dictionary | undefined> {
  return (await dictionaryOf(db, { program, check_policy_hash })).rows[0];
}

/** Adds a dictionary, unless another process has added one for these versions. */
export async function addDictionary(db: StoreDb, likeness: Likeness, text: string): Promise<void> {
  await db
    .insertInto('evidence_dictionaries')
    .values({ ...likeness, text })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
}

const EVIDENCE_COLUMNS = [
  'id',
  'executor_id',
  'seq',
  'previous',
  'finished_ms',
  'verdict',
  'document',
  'dictionary',
  'signature',
  'validator',
] as const;
const PASSED_COLUMNS = ['executor_id', 'seq', 'finished_ms', 'document', 'dictionary'] as const;

const insertRow = prepared((db, row: Slots<EvidenceTable>) =>
  db.insertInto('evidence').values(columnsFrom(row, EVIDENCE_COLUMNS)),
);
const insertPassed = prepared((db, row: Slots<PassedDocumentsTable>) =>
  db.insertInto('passed_documents').values(columnsFrom(row, PASSED_COLUMNS)),
);

/** Stores a document, packed if there is a dictionary. Only the document of a passed check can be dropped later. */
export async function insertEvidence(
  db: StoreDb,
  row: EvidenceRow & { document: string },
  dictionary?: Dictionary,
): Promise<void> {
  const { document, executor_id, seq, finished_ms } = row;
  const stored =
    dictionary === undefined
      ? { document, dictionary: null }
      : { document: pack(document, dictionary.text), dictionary: dictionary.id };
  const isDroppable = row.verdict === 'ok';
  const kept = isDroppable ? { document: '', dictionary: null } : stored;
  await insertRow(db, { ...row, ...kept });
  if (isDroppable) await insertPassed(db, { executor_id, seq, finished_ms, ...stored });
}

const byId = prepared((db, { id }: Slots<{ id: string }>) =>
  evidenceRows(db).where('evidence.id', '=', id),
);

export async function findEvidence(db: StoreDb, id: string): Promise<EvidenceRow | undefined> {
  const [row] = await unpackRows(db, (await byId(db, { id })).rows);
  return row;
}

const dictionaryById = prepared((db, { id }: Slots<{ id: number }>) =>
  db.selectFrom('evidence_dictionaries').select('text').where('id', '=', id),
);

/** Rows of `evidence`, each with the document of a passed check beside it. */
const evidenceRows = (db: StoreDb) =>
  db
    .selectFrom('evidence')
    .leftJoin('passed_documents as passed', (join) =>
      join
        .onRef('passed.executor_id', '=', 'evidence.executor_id')
        .onRef('passed.seq', '=', 'evidence.seq'),
    )
    .selectAll('evidence')
    .select(['passed.document as passed_document', 'passed.dictionary as passed_dictionary']);

type StoredRow = Selectable<EvidenceTable> & {
  passed_document: string | null;
  passed_dictionary: number | null;
};

/** A document that cannot be unpacked has an empty text, which matches no id. */
async function unpackRows(db: StoreDb, stored: readonly StoredRow[]): Promise<EvidenceRow[]> {
  const rows = stored.map(({ passed_document, passed_dictionary, ...row }) =>
    row.document === ''
      ? { ...row, document: passed_document, dictionary: passed_dictionary }
      : row,
  );
  const texts = new Map<number, string | undefined>();
  for (const id of new Set(rows.flatMap(({ dictionary }) => dictionary ?? []))) {
    texts.set(id, (await dictionaryById(db, { id })).rows[0]?.text);
  }
  return rows.map(({ dictionary, ...row }) =>
    dictionary === null || row.document === null
      ? row
      : { ...row, document: textOf(row.document, texts.get(dictionary)) },
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
  const heads = await db.selectFrom('evidence_heads').select('executor_id').execute();
  const found = new Set(heads.map(({ executor_id }) => executor_id));
  // One look-up for each executor, because a scan of the index would read every row.
  for (let id = ''; ; ) {
    const next = await db
      .selectFrom('evidence')
      .select('executor_id')
      .where('executor_id', '>', id)
      .orderBy('executor_id')
      .limit(1)
      .executeTakeFirst();
    if (next === undefined) return [...found].sort();
    id = next.executor_id;
    found.add(id);
  }
}

/** Next `limit` documents of an executor after `seq`. */
export async function evidenceAfter(
  db: StoreDb,
  executorId: string,
  seq: number,
  limit: number,
): Promise<EvidenceRow[]> {
  const rows = await evidenceRows(db)
    .where('evidence.executor_id', '=', executorId)
    .where('evidence.seq', '>', seq)
    .orderBy('evidence.seq')
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

/** Which rows a chain retains. */
export type Retention = {
  /** Rows with a signed header that finished earlier are deleted. */
  beforeMs: number;
  /** Rows of older versions that finished earlier are deleted: they cannot be verified without their documents. */
  unheadedBeforeMs: number;
  /** Maximum number of rows. */
  keep: number;
};

/** Deletes the beginning of a chain: rows that are too old or too many. Returns null if none was deleted. */
export async function pruneEvidence(
  db: StoreDb,
  executorId: string,
  { beforeMs, unheadedBeforeMs, keep }: Retention,
): Promise<Pruned | null> {
  const own = db.selectFrom('evidence').where('executor_id', '=', executorId);
  // In the order of the chain, so that only rows that are deleted are read.
  const young = await own
    .select('seq')
    .where('finished_ms', '>=', beforeMs)
    .where((eb) =>
      eb.or([eb('validator', 'is not', null), eb('finished_ms', '>=', unheadedBeforeMs)]),
    )
    .orderBy('seq')
    .limit(1)
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

/** Oldest documents of passed checks of an executor, at most `limit`. */
export function oldestPassedDocuments(
  db: StoreDb,
  executorId: string,
  limit: number,
): Promise<{ seq: number; finished_ms: number }[]> {
  return db
    .selectFrom('passed_documents')
    .select(['seq', 'finished_ms'])
    .where('executor_id', '=', executorId)
    .orderBy('seq')
    .limit(limit)
    .execute();
}

/** Deletes the documents of passed checks up to `lastSeq`. */
export async function deletePassedDocuments(
  db: StoreDb,
  executorId: string,
  lastSeq: number,
): Promise<void> {
  await db
    .deleteFrom('passed_documents')
    .where('executor_id', '=', executorId)
    .where('seq', '<=', lastSeq)
    .execute();
}

const headOf = prepared((db, { executorId }: OfExecutor) =>
  db.selectFrom('evidence_heads').selectAll().where('executor_id', '=', executorId),
);

export async function findHead(
  db: StoreDb,
  executorId: string,
): Promise<EvidenceHeadRow | undefined> {
  return (await headOf(db, { executorId })).rows[0];
}

const HEAD_COLUMNS = [
  'validator',
  'signed_ms',
  'first_seq',
  'first_previous',
  'pruned_ms',
  'dropped_seq',
  'dropped_ms',
  'last_seq',
  'last_id',
  'signature',
] as const;

const updateHead = prepared((db, head: Slots<EvidenceHeadRow & { before: string }>) =>
  db
    .updateTable('evidence_heads')
    .set(columnsFrom(head, HEAD_COLUMNS))
    .where('executor_id', '=', head.executor_id)
    .where('signature', '=', head.before),
);

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
  const { numAffectedRows } = await updateHead(tx, { ...row, before: before.signature });
  if (numAffectedRows !== 1n) {
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
