/** Queries of the examinations of renters' reports. */
import type { ReportToExamine } from '#shared/api/central/pod-reports.ts';
import { prepared, type Slots } from '../../store/prepared.ts';
import type { PodReportRow, StoreDb } from '../../store/tables.ts';

/** Adds newly listed reports, and deletes undecided ones that are not listed any more and old decided ones. */
export async function syncReports(
  db: StoreDb,
  listed: readonly ReportToExamine[],
  oldestMs: number,
): Promise<void> {
  const fresh = { findings_json: '[]', looks: 0, next_ms: 0, outcome: null, decided_ms: null };
  const undecided = { ...fresh, document: null, signature: null, cleared_ms: null };
  for (const { id: report_id, executor_id, pod_id, reason, reported_ms } of listed) {
    await db
      .insertInto('pod_reports')
      .values({ report_id, executor_id, pod_id, reason, reported_ms, ...undecided })
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
  const ids = listed.map(({ id }) => id);
  const open = db.deleteFrom('pod_reports').where('outcome', 'is', null);
  await (ids.length === 0 ? open : open.where('report_id', 'not in', ids)).execute();
  await db
    .deleteFrom('pod_reports')
    .where('decided_ms', '<', oldestMs)
    .where((eb) => eb.or([eb('outcome', '!=', 'confirmed'), eb('cleared_ms', 'is not', null)]))
    .execute();
}

export function findReport(db: StoreDb, id: string): Promise<PodReportRow | undefined> {
  return db.selectFrom('pod_reports').selectAll().where('report_id', '=', id).executeTakeFirst();
}

export async function changeReport(
  db: StoreDb,
  id: string,
  change: Partial<Omit<PodReportRow, 'report_id'>>,
): Promise<void> {
  await db.updateTable('pod_reports').set(change).where('report_id', '=', id).execute();
}

/** Stores a decision. Returns false if the report is already decided. */
export async function decideReport(
  tx: StoreDb,
  id: string,
  decision: Pick<
    PodReportRow,
    'findings_json' | 'outcome' | 'decided_ms' | 'document' | 'signature'
  >,
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('pod_reports')
    .set(decision)
    .where('report_id', '=', id)
    .where('outcome', 'is', null)
    .executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

type OfExecutor = Slots<{ executorId: string }>;

const undecided = prepared((db, { executorId }: OfExecutor) =>
  db
    .selectFrom('pod_reports')
    .select((eb) => eb.fn.max<number | null>('reported_ms').as('reported_ms'))
    .where('executor_id', '=', executorId)
    .where('outcome', 'is', null),
);

/** Time of the newest undecided report on an executor; null if there is none. */
export async function newestUndecided(db: StoreDb, executorId: string): Promise<number | null> {
  return (await undecided(db, { executorId })).rows[0]?.reported_ms ?? null;
}

const confirmed = prepared((db, { executorId }: OfExecutor) =>
  db
    .selectFrom('pod_reports')
    .selectAll()
    .where('executor_id', '=', executorId)
    .where('outcome', '=', 'confirmed')
    .where('cleared_ms', 'is', null)
    .orderBy('decided_ms', 'desc')
    .limit(1),
);

/** The last confirmed report on an executor that no test rental has cleared. */
export async function findConfirmed(
  db: StoreDb,
  executorId: string,
): Promise<PodReportRow | undefined> {
  return (await confirmed(db, { executorId })).rows[0];
}

/** Ends the effect of all reports on an executor that were confirmed until `untilMs`. */
export async function clearReports(
  db: StoreDb,
  executorId: string,
  { untilMs, atMs }: { untilMs: number; atMs: number },
): Promise<void> {
  await db
    .updateTable('pod_reports')
    .set({ cleared_ms: atMs })
    .where('executor_id', '=', executorId)
    .where('outcome', '=', 'confirmed')
    .where('decided_ms', '<=', untilMs)
    .where('cleared_ms', 'is', null)
    .execute();
}
