/**
 * Moves a SQLite database to an empty PostgreSQL database: copies the tables in the order of their references, compares
 * both sides, and marks the file so that no process starts on it. A move that was interrupted at any point continues
 * when it is repeated.
 */
import type { Kysely } from 'kysely';
import { type Clock, createEventLoopYield } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Progress } from '#shared/runtime/progress.ts';
import type { Random } from '#shared/runtime/random.ts';
import { inFileThread } from '../file-thread.ts';
import { MOVE_TABLE, type MoveRecord, readMoveRecord } from '../move-record.ts';
import { lockFile, openDatabase, requireDatabaseFile } from '../open-database.ts';
import { type DatabaseLocation, KINDS, tablesIn } from '../ownership.ts';
import { markRestored } from '../restore-database.ts';
import { countRows } from '../row-counts.ts';
import { type Comparison, compareTables } from './compare-tables.ts';
import { connectionError, failure, refusal, targetError } from './move-error.ts';
import {
  openSourceFile,
  recordInSource,
  removeSourceRecord,
  type SourceFile,
} from './source-file.ts';
import type { Table } from './table.ts';
import {
  advance,
  analyze,
  beginInTarget,
  insertRows,
  progressOf,
  recordInTarget,
  setSequences,
} from './target-server.ts';

/** A kind of database that can be moved. */
export type MovableKind<Tables> = {
  kind: DatabaseLocation['kind'];
  /** Schema number of this program. */
  schema: number;
  schemaOf(db: Kysely<Tables>): Promise<number>;
  /** Opens a database and creates its tables. */
  open(address: string, variable: string): Promise<Kysely<Tables>>;
  /** Columns that each engine sets itself, by table. They are not compared. */
  assigned: Readonly<Record<string, readonly string[]>>;
  /** Audits the contents, and returns the result as text, which must be the same on both sides; null: no audit. */
  audit: ((db: Kysely<Tables>) => Promise<string>) | null;
};

export type MoveRequest<Tables> = {
  kind: MovableKind<Tables>;
  /** The SQLite file. */
  source: DatabaseLocation;
  target: Pick<DatabaseLocation, 'address' | 'variable'>;
};

export type MovePorts = {
  clock: Clock;
  random: Pick<Random, 'uuid'>;
  progress: Pick<Progress, 'step' | 'at'>;
};

export type MoveResult = {
  /** The target without its password. */
  place: string;
  /** Null if an earlier command completed the move. */
  copied: (Comparison & { audit: string | null }) | null;
  /** Tables of other programs, which were not copied. */
  skipped: readonly string[];
};

const APPLICATION = 'podwright-move';

/** Rejects with an error whose message begins with a stable code. */
export async function moveDatabase<Tables>(
  request: MoveRequest<Tables>,
  ports: MovePorts,
): Promise<MoveResult> {
  const { source } = request;
  const lock = await lockSource(source);
  try {
    const file = openSourceFile(source.address);
    try {
      return await moveLocked(request, file, ports);
    } finally {
      file.close();
    }
  } finally {
    lock.close();
  }
}

/**
 * Removes the mark of a move, so that processes may use the file again. Returns the removed record. The file lacks all
 * changes since a completed move; a central API then charges nothing for this time.
 */
export async function undoMove(
  source: DatabaseLocation,
  { clock }: Pick<MovePorts, 'clock'>,
): Promise<MoveRecord> {
  const lock = await lockSource(source);
  try {
    const record = await sourceRecord(source);
    if (record === null)
      throw refusal('not_moved', `${source.address} is not marked as moved: nothing to undo`);
    if (record.state === 'done' && source.kind === 'central')
      markRestored(source.address, clock.now());
    removeSourceRecord(source.address);
    return record;
  } finally {
    lock.close();
  }
}

async function lockSource(source: DatabaseLocation) {
  try {
    await requireDatabaseFile({ ...source, inMove: true });
  } catch (cause) {
    const remedy = `Name the SQLite file to be moved with --${KINDS[source.kind].option} FILE, or with ${source.variable}`;
    throw refusal('source_unusable', `${messageOf(cause).replace(/\.$/, '')}. ${remedy}`, cause);
  }
  try {
    return lockFile(source);
  } catch (cause) {
    throw failure('source_in_use', messageOf(cause), cause);
  }
}

async function moveLocked<Tables>(
  { kind, source, target }: MoveRequest<Tables>,
  file: SourceFile,
  ports: MovePorts,
): Promise<MoveResult> {
  ports.progress.step('checking the file');
  await requireIntact(source, file);
  const from = await openDatabase<Tables>({
    ...source,
    applicationName: APPLICATION,
    readOnly: true,
    inMove: true,
  });
  try {
    await requireSchema(kind, from, source.address);
    const known = await contentsOfNew(kind);
    const all = file.tables();
    const tables = all.filter(({ name }) => known.has(name));
    const skipped = all.flatMap(({ name }) => (known.has(name) ? [] : [name]));
    ports.progress.step('connecting to the server');
    const to = await openTarget(kind, target);
    try {
      const move = { kind, source, target, file, tables, known, from, to };
      return { place: placeOf(target.address), copied: await moveTables(move, ports), skipped };
    } catch (error) {
      throw targetError(error);
    } finally {
      await to.destroy();
    }
  } finally {
    await from.destroy();
  }
}

type Move<Tables> = MoveRequest<Tables> & {
  file: SourceFile;
  tables: readonly Table[];
  /** Number of rows in each table of a new database. */
  known: ReadonlyMap<string, number>;
  from: Kysely<Tables>;
  to: Kysely<Tables>;
};

async function moveTables<Tables>(
  move: Move<Tables>,
  ports: MovePorts,
): Promise<MoveResult['copied']> {
  const { kind, source, target, file, tables, from, to } = move;
  const { clock, progress } = ports;
  const record = await beginOrContinue(move, ports);
  if (record.state === 'done') return null;
  for (const table of tables) await copyTable(file, to, table, progress);
  progress.step('computing statistics');
  const sequences = file.sequences();
  for (const table of tables) {
    await setSequences(to, table, sequences.get(table.name) ?? 0);
    await analyze(to, table);
  }
  const compared = await compareTables(
    { file, tables, to, ignored: (table) => kind.assigned[table] ?? [] },
    { progress, yieldToEventLoop: createEventLoopYield(clock) },
  );
  const audit = await sameAudit(kind, from, to, progress);
  const ended = { ...record, state: 'done', atMs: clock.now() } as const;
  // The file first: processes must never be able to start on both.
  recordInSource(source.address, { ...ended, role: 'source', other: placeOf(target.address) });
  await recordInTarget(to, ended);
  return { ...compared, audit };
}

/**
 * Marks both databases before the first row is copied, or finds the marks of an interrupted move. Returns the record of
 * the target. A process starts on neither database until the move is complete.
 */
async function beginOrContinue<Tables>(
  { kind, source, target, tables, known, from, to }: Move<Tables>,
  { clock, random }: MovePorts,
): Promise<MoveRecord> {
  const ofSource = await recordIn(from);
  const ofTarget = await recordIn(to);
  const place = placeOf(target.address);
  if (ofSource !== null && ofTarget?.id === ofSource.id) return ofTarget;
  if (ofSource?.state === 'done') {
    throw refusal('already_moved', `${source.address} was moved to ${ofSource.other}`);
  }
  await requireSchema(kind, to, place);
  if (ofTarget !== null || !(await isNew(to, known))) {
    throw refusal('target_not_empty', `${place} is not empty: name an empty database`);
  }
  const record = {
    id: ofSource?.id ?? random.uuid(),
    state: 'copying',
    atMs: clock.now(),
  } as const;
  recordInSource(source.address, { ...record, role: 'source', other: place });
  const inTarget = { ...record, role: 'target', other: source.address } as const;
  await beginInTarget(to, inTarget, {
    location: { ...target, kind: kind.kind, inMove: true },
    tables,
    // A new database has rows that the file has too.
    emptied: tables.filter(({ name }) => known.get(name) !== 0).toReversed(),
  });
  return inTarget;
}

async function copyTable<Tables>(
  file: SourceFile,
  to: Kysely<Tables>,
  table: Table,
  progress: MovePorts['progress'],
): Promise<void> {
  let at = await progressOf(to, table);
  if (at.isDone) return;
  const total = file.count(table);
  progress.step(`copying ${table.name}`);
  for (const { rows, last } of file.batches(table, at.after)) {
    const next = { rows: at.rows + rows.length, after: last, isDone: false };
    const before = at;
    await to.transaction().execute(async (tx) => {
      await insertRows(tx, table, rows);
      await advance(tx, table, before, next);
    });
    at = next;
    progress.at(at.rows, total);
  }
  await advance(to, table, at, { ...at, isDone: true });
}

async function sameAudit<Tables>(
  { audit }: MovableKind<Tables>,
  from: Kysely<Tables>,
  to: Kysely<Tables>,
  progress: MovePorts['progress'],
): Promise<string | null> {
  if (audit === null) return null;
  progress.step('auditing both sides');
  const [ofSource, ofTarget] = [await audit(from), await audit(to)];
  if (ofSource === ofTarget) return ofSource;
  throw refusal('copy_differs', `the audit of the file is: ${ofSource}; of the copy: ${ofTarget}`);
}

async function requireIntact({ address }: DatabaseLocation, file: SourceFile): Promise<void> {
  const finding =
    (await inFileThread({ kind: 'check-all', path: address })) ?? file.brokenReference();
  if (finding === null) return;
  throw refusal('source_damaged', `${address} is damaged: ${finding}. Restore a backup, then move`);
}

async function requireSchema<Tables>(
  { schema, schemaOf }: MovableKind<Tables>,
  db: Kysely<Tables>,
  place: string,
): Promise<void> {
  const present = await schemaOf(db);
  if (present === schema) return;
  const remedy =
    present > schema
      ? 'run a newer version'
      : 'start a process of this version on it once, then stop the process';
  throw refusal(
    'schema_differs',
    `${place} has schema ${present}, this program has ${schema}: ${remedy}`,
  );
}

/** Counts the rows of each table of a new database. */
async function contentsOfNew<Tables>({ open }: MovableKind<Tables>): Promise<Map<string, number>> {
  const db = await open(':memory:', 'a new database');
  try {
    return new Map((await countRows(db)).map(({ name, rows }) => [name, rows]));
  } finally {
    await db.destroy();
  }
}

async function isNew<Tables>(
  db: Kysely<Tables>,
  known: ReadonlyMap<string, number>,
): Promise<boolean> {
  const counts = await countRows(db);
  return counts.every(({ name, rows }) => !known.has(name) || known.get(name) === rows);
}

/** Opens the target. Creates the tables in an empty database. */
async function openTarget<Tables>(
  { kind, open }: MovableKind<Tables>,
  { address, variable }: MoveRequest<Tables>['target'],
): Promise<Kysely<Tables>> {
  const location = { address, variable, kind, applicationName: APPLICATION, inMove: true } as const;
  const db = await openDatabase<Tables>(location).catch((cause) => {
    throw connectionError(cause);
  });
  try {
    if ((await tablesIn(db)).length > 0) return db;
    await (await open(address, variable)).destroy();
    return db;
  } catch (error) {
    await db.destroy();
    throw targetError(error);
  }
}

async function recordIn<Tables>(db: Kysely<Tables>): Promise<MoveRecord | null> {
  return (await tablesIn(db)).includes(MOVE_TABLE) ? readMoveRecord(db) : null;
}

async function sourceRecord(source: DatabaseLocation): Promise<MoveRecord | null> {
  const db = await openDatabase<unknown>({
    ...source,
    applicationName: APPLICATION,
    readOnly: true,
    inMove: true,
  });
  try {
    return await recordIn(db);
  } finally {
    await db.destroy();
  }
}

/** Describes the address of a server without user, password and options. */
export function placeOf(address: string): string {
  const { hostname = '', port = '', pathname = '', searchParams } = URL.parse(address) ?? {};
  const host = searchParams?.get('host') ?? (port === '' ? hostname : `${hostname}:${port}`);
  return `the PostgreSQL database ${pathname.slice(1)} at ${host}`;
}
