/** Queries of the pod_reports table. */
import type { Db, PodReport } from '../../platform/database/tables.ts';
import type { EarlierReport } from './report.plan.ts';
import { OPEN_STATES, type ReportState, sourcesOf } from './report.state.ts';

export async function insertReport(db: Db, row: PodReport): Promise<void> {
  await db.insertInto('pod_reports').values(row).execute();
}

export function findReport(db: Db, id: string): Promise<PodReport | undefined> {
  return db.selectFrom('pod_reports').selectAll().where('id', '=', id).executeTakeFirst();
}

/** Lists the account's reports since a time, and older ones that have not ended, for its limits. */
export function listEarlier(db: Db, accountId: string, sinceMs: number): Promise<EarlierReport[]> {
  return db
    .selectFrom('pod_reports')
    .select(['pod_id', 'executor_id', 'state', 'created_at', 'ended_at'])
    .where('account_id', '=', accountId)
    .where((eb) => eb.or([eb('created_at', '>=', sinceMs), eb('ended_at', 'is', null)]))
    .execute();
}

/** Lists the account's reports, newest first. */
export function listReportsOf(
  db: Db,
  accountId: string,
  { podId, limit }: { podId: string | undefined; limit: number },
): Promise<PodReport[]> {
  const own = db.selectFrom('pod_reports').selectAll().where('account_id', '=', accountId);
  const selected = podId === undefined ? own : own.where('pod_id', '=', podId);
  return selected.orderBy('created_at', 'desc').orderBy('id').limit(limit).execute();
}

/** Lists reports that have not ended, with pod and node, oldest first. Leaves out those that another validator holds. */
export function listToExamine(
  db: Db,
  { hotkey, nowMs, limit }: { hotkey: string; nowMs: number; limit: number },
) {
  return db
    .selectFrom('pod_reports as report')
    .innerJoin('pods', 'pods.id', 'report.pod_id')
    .innerJoin('executors', 'executors.id', 'report.executor_id')
    .select([
      'report.id',
      'report.pod_id',
      'report.executor_id',
      'report.reason',
      'report.consent',
      'report.created_at',
      'pods.state as pod_state',
      'pods.created_at as rented_at',
      'pods.gpu_count',
      'pods.spec_json',
      'executors.gpu_type',
      'executors.offer_changed_at',
    ])
    .where('report.ended_at', 'is', null)
    .where((eb) =>
      eb.or([
        eb('report.state', '=', 'open'),
        eb('report.validator_hotkey', '=', hotkey),
        eb('report.claimed_until', '<=', nowMs),
      ]),
    )
    .orderBy('report.created_at')
    .orderBy('report.id')
    .limit(limit)
    .execute();
}

/** Claims reports that no other validator holds, and extends the claims of this validator. */
export async function claimReports(
  db: Db,
  ids: readonly string[],
  { hotkey, nowMs, untilMs }: { hotkey: string; nowMs: number; untilMs: number },
): Promise<void> {
  if (ids.length === 0) return;
  await db
    .updateTable('pod_reports')
    .set({
      state: 'examining',
      validator_hotkey: hotkey,
      claimed_until: untilMs,
      updated_at: nowMs,
    })
    .where('id', 'in', [...ids])
    .where('state', 'in', [...OPEN_STATES])
    .where((eb) =>
      eb.or([
        eb('state', '=', 'open'),
        eb('validator_hotkey', '=', hotkey),
        eb('claimed_until', '<=', nowMs),
      ]),
    )
    .execute();
}

/** Moves a report. Returns false if its state does not permit the move, or if another validator than `holder` has it. */
export async function moveReport(
  db: Db,
  id: string,
  to: ReportState,
  change: Partial<Omit<PodReport, 'id' | 'state'>> & { updated_at: number },
  holder?: string,
): Promise<boolean> {
  const update = db
    .updateTable('pod_reports')
    .set({ ...change, state: to })
    .where('id', '=', id)
    .where('state', 'in', sourcesOf(to));
  const held = holder === undefined ? update : update.where('validator_hotkey', '=', holder);
  const { numUpdatedRows } = await held.executeTakeFirstOrThrow();
  return numUpdatedRows > 0n;
}

export async function setRefund(db: Db, id: string, refundUusd: number): Promise<void> {
  await db
    .updateTable('pod_reports')
    .set({ refund_uusd: refundUusd })
    .where('id', '=', id)
    .execute();
}

/** Address of the node's provider; null if the provider has none. */
export async function providerMailOf(db: Db, executorId: string) {
  return db
    .selectFrom('executors')
    .innerJoin('providers', 'providers.id', 'executors.provider_id')
    .select(['providers.id', 'providers.email'])
    .where('executors.id', '=', executorId)
    .executeTakeFirst();
}

/** Ends the open reports of an account that is being removed, and clears its descriptions. */
export async function clearReportsOf(db: Db, accountId: string, nowMs: number): Promise<void> {
  await db
    .updateTable('pod_reports')
    .set({ state: 'expired', claimed_until: null, updated_at: nowMs, ended_at: nowMs })
    .where('account_id', '=', accountId)
    .where('state', 'in', [...OPEN_STATES])
    .execute();
  const cleared = { description: null, consent: 0 } as const;
  await db.updateTable('pod_reports').set(cleared).where('account_id', '=', accountId).execute();
}
