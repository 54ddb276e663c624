/** Queries of the state of executors between inspections, and of the processes that have claimed them. */
import type { ExpressionBuilder, RawBuilder } from 'kysely';
import { isShared } from '../store/evidence-store.ts';
import { columnsFrom, prepared, type Slots } from '../store/prepared.ts';
import type { EvidenceStore, InspectionRow, StoreDb } from '../store/tables.ts';

/** Maximum number of rows per statement; databases limit the number of variables of a statement. */
const ROWS_AT_ONCE = 500;

/** Times that decide which executors are due and unclaimed, in milliseconds. */
export type Due = {
  nowMs: number;
  /** Every executor is due if its last inspection was at or before this time. */
  verifiedMs: number;
  /**
   * An executor that is not verified is also due if its last inspection was at or before this time and its pause is
   * over.
   */
  otherMs: number;
  /** Claims that ended before this time have expired. */
  freeMs: number;
};

/** Adds newly listed executors and deletes unlisted ones, except claimed ones. */
export async function syncInspections(
  db: StoreDb,
  executorIds: ReadonlySet<string>,
  freeMs: number,
): Promise<void> {
  const rows = await db.selectFrom('inspections').select('executor_id').execute();
  const known = new Set(rows.map((row) => row.executor_id));
  for (const ids of inParts([...executorIds].filter((id) => !known.has(id)))) {
    const nothing = { checked_ms: 0, verdict: null, facts_ms: 0, pause_ms: null };
    const reached = { transport_failures: 0, unreachable_since_ms: null };
    const streaks = { streaks_json: '{}', streak_times_json: '{}' };
    const memory = { ...streaks, found_json: '{}', proof_record_json: 'null' };
    const fresh = { ...nothing, ...reached, ...memory };
    await db
      .insertInto('inspections')
      .values(ids.map((id) => ({ executor_id: id, ...fresh, holder: null, held_until_ms: 0 })))
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
  for (const ids of inParts([...known].filter((id) => !executorIds.has(id)))) {
    await db
      .deleteFrom('inspections')
      .where('executor_id', 'in', ids)
      .where('held_until_ms', '<', freeMs)
      .execute();
  }
}

/** Ends the pauses of executors; the next pause starts from the shortest. */
export async function resetPauses(db: StoreDb, executorIds: readonly string[]): Promise<void> {
  for (const ids of inParts(executorIds)) {
    await db
      .updateTable('inspections')
      .set({ pause_ms: null })
      .where('executor_id', 'in', ids)
      .execute();
  }
}

/** Executors that are due and unclaimed, least recently inspected first. */
export async function dueInspections(db: StoreDb, due: Due): Promise<string[]> {
  const rows = await db
    .selectFrom('inspections')
    .select('executor_id')
    .where(isDue(due))
    .orderBy('checked_ms')
    .orderBy('executor_id')
    .execute();
  return rows.map((row) => row.executor_id);
}

/** Claims those executors that are still due and unclaimed; resolves with their ids. */
export async function claimInspections(
  store: EvidenceStore,
  executorIds: readonly string[],
  { due, holder, untilMs }: { due: Due; holder: string; untilMs: number },
): Promise<string[]> {
  return store.transaction().execute(async (tx) => {
    const free = tx
      .selectFrom('inspections')
      .select('executor_id')
      .where('executor_id', 'in', [...executorIds])
      .where(isDue(due))
      .orderBy('executor_id');
    // Rows that another process is claiming are skipped, which also avoids deadlocks.
    const rows = await (isShared(tx) ? free.forUpdate().skipLocked() : free).execute();
    const ids = rows.map((row) => row.executor_id);
    if (ids.length === 0) return [];
    await tx
      .updateTable('inspections')
      .set({ holder, held_until_ms: untilMs })
      .where('executor_id', 'in', ids)
      .execute();
    return ids;
  });
}

export async function extendClaims(db: StoreDb, holder: string, untilMs: number): Promise<void> {
  await db
    .updateTable('inspections')
    .set({ held_until_ms: untilMs })
    .where('holder', '=', holder)
    .execute();
}

/** Releases a claim without a result; the executor stays due. */
export async function releaseInspection(
  db: StoreDb,
  executorId: string,
  holder: string,
): Promise<void> {
  await db
    .updateTable('inspections')
    .set({ holder: null, held_until_ms: 0 })
    .where('executor_id', '=', executorId)
    .where('holder', '=', holder)
    .execute();
}

const inspectionOf = prepared((db, { executorId }: Slots<{ executorId: string }>) =>
  db.selectFrom('inspections').selectAll().where('executor_id', '=', executorId),
);

export async function findInspection(
  db: StoreDb,
  executorId: string,
): Promise<InspectionRow | undefined> {
  return (await inspectionOf(db, { executorId })).rows[0];
}

/** State after an inspection; `verdict` and `facts_ms` are its results. */
export type InspectionResult = Omit<InspectionRow, 'holder' | 'held_until_ms'>;

/** Columns to update. A withheld verdict does not change the time of the newest facts. */
function changesOf({ executor_id: _, facts_ms, ...result }: InspectionResult) {
  return result.verdict === 'withheld' ? result : { ...result, facts_ms };
}

/**
 * Condition that the stored facts are not newer. Facts from after `latestMs` were recorded before the clock was set
 * back, and do not count as newer.
 */
function isNotNewer(
  { facts_ms: factsMs }: { facts_ms: number | RawBuilder<number> },
  latestMs: number | RawBuilder<number>,
) {
  return (eb: Expressions) =>
    eb.or([eb('inspections.facts_ms', '<=', factsMs), eb('inspections.facts_ms', '>', latestMs)]);
}

const RESULT_COLUMNS = [
  'checked_ms',
  'verdict',
  'pause_ms',
  'transport_failures',
  'unreachable_since_ms',
  'streaks_json',
  'streak_times_json',
  'found_json',
  'proof_record_json',
] as const;

type Ending = InspectionResult & { heldBy: string; latestMs: number };

const ending = (columns: readonly (keyof InspectionResult)[]) =>
  prepared((db, result: Slots<Ending>) =>
    db
      .updateTable('inspections')
      .set({ ...columnsFrom(result, columns), holder: null, held_until_ms: 0 })
      .where('executor_id', '=', result.executor_id)
      .where('holder', '=', result.heldBy)
      .where(isNotNewer(result, result.latestMs)),
  );
const endWithheld = ending(RESULT_COLUMNS);
const endJudged = ending([...RESULT_COLUMNS, 'facts_ms']);

/** Stores the result of a claimed inspection. Returns false if the claim was lost or a verdict on newer facts is stored. */
export async function endInspection(
  tx: StoreDb,
  result: InspectionResult,
  { holder, latestMs }: { holder: string; latestMs: number },
): Promise<boolean> {
  const end = result.verdict === 'withheld' ? endWithheld : endJudged;
  const { numAffectedRows = 0n } = await end(tx, { ...result, heldBy: holder, latestMs });
  return numAffectedRows > 0n;
}

/**
 * Stores the result of an unclaimed inspection; a claim of another process stays valid. Returns false if a verdict on
 * newer facts is stored.
 */
export async function recordUnclaimedInspection(
  tx: StoreDb,
  result: InspectionResult,
  latestMs: number,
): Promise<boolean> {
  const { numInsertedOrUpdatedRows: count = 0n } = await tx
    .insertInto('inspections')
    .values({
      executor_id: result.executor_id,
      facts_ms: 0,
      ...changesOf(result),
      holder: null,
      held_until_ms: 0,
    })
    .onConflict((conflict) =>
      conflict
        .column('executor_id')
        .doUpdateSet(changesOf(result))
        .where(isNotNewer(result, latestMs)),
    )
    .executeTakeFirst();
  return count > 0n;
}

/** Inspections in the future happened before the clock was set back: their executors are due. */
function isDue({ nowMs, verifiedMs, otherMs, freeMs }: Due) {
  return (eb: Expressions) =>
    eb.and([
      eb('held_until_ms', '<', freeMs),
      eb.or([
        eb('verdict', 'is', null),
        eb('checked_ms', '>', nowMs),
        eb('checked_ms', '<=', verifiedMs),
        eb.and([
          eb('verdict', '!=', 'verified'),
          eb('checked_ms', '<=', otherMs),
          eb(eb('checked_ms', '+', eb.fn.coalesce('pause_ms', eb.lit(0))), '<=', nowMs),
        ]),
      ]),
    ]);
}

type Expressions = ExpressionBuilder<{ inspections: InspectionRow }, 'inspections'>;

function inParts(ids: readonly string[]): string[][] {
  const parts: string[][] = [];
  for (let at = 0; at < ids.length; at += ROWS_AT_ONCE)
    parts.push(ids.slice(at, at + ROWS_AT_ONCE));
  return parts;
}

/** Executors whose agent answered in the last inspection. */
export async function reachableExecutors(db: StoreDb): Promise<Set<string>> {
  const rows = await db
    .selectFrom('inspections')
    .select('executor_id')
    .where('checked_ms', '>', 0)
    .where('transport_failures', '=', 0)
    .execute();
  return new Set(rows.map((row) => row.executor_id));
}
