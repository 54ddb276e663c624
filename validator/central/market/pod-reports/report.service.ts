/** Records renters' reports, passes them to validators, and applies the outcomes of examinations. */
import { PodSpec } from '#shared/api/agent/pod.ts';
import {
  MAX_REPORTS_AT_ONCE,
  type ReportDocument,
  ReportReason,
  type ReportToExamine,
  readSignedReport,
  SignedReport,
} from '#shared/api/central/pod-reports.ts';
import { microToUsd } from '#shared/api/money.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError, invalidField } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { lockAccount } from '../../accounts/auth/account-access.ts';
import type { ReportRefunds } from '../../money/metering/report-refund.ts';
import type { Database, Db, PodReport as ReportRow } from '../../platform/database/tables.ts';
import { lockRow, moneyTransaction } from '../../platform/database/transactions.ts';
import type { UserIdentity, ValidatorIdentity } from '../../platform/identity.ts';
import { clearDue, setDue } from '../../platform/schedule/due.ts';
import type { DueHandlers } from '../../platform/schedule/schedule.ts';
import { requireAnyOwnPod } from '../pods/pod-access.ts';
import { type NotifyDeps, notifyEnd } from './notify-parties.ts';
import { COUNTED_MS, EXPIRY_MS, requireReportable } from './report.plan.ts';
import type {
  PodReport,
  PodReportRequest,
  PodReportsQuery,
  ReportedOutcome,
} from './report.schemas.ts';
import { OPEN_STATES, stateAfter } from './report.state.ts';
import {
  claimReports,
  findReport,
  insertReport,
  listEarlier,
  listReportsOf,
  listToExamine,
  moveReport,
  setRefund,
} from './report.store.ts';

export { clearReportsOf } from './report.store.ts';

/** Time for which a claim lasts. A validator extends it with every query. */
const CLAIM_MS = 3_600_000;

export type ReportsDeps = NotifyDeps & {
  db: Database;
  clock: Clock;
  random: Random;
  refunds: ReportRefunds;
};

export type PodReports = ReturnType<typeof createPodReports>;

export function createPodReports(deps: ReportsDeps) {
  const { db, clock, random, refunds } = deps;

  /** Applies an outcome in a transaction that has locked the account. */
  async function applyOutcome(
    tx: Db,
    report: ReportRow,
    document: ReportDocument,
    signed: SignedReport,
  ): Promise<ReportRow> {
    const nowMs = clock.now();
    const { outcome } = document;
    const attempts = report.attempts + (outcome === 'unexamined' ? 1 : 0);
    const state = stateAfter(outcome, attempts);
    const endedAt = state === 'open' ? null : nowMs;
    const change = {
      attempts,
      evidence_json: JSON.stringify(signed),
      claimed_until: null,
      updated_at: nowMs,
      ended_at: endedAt,
    };
    const isMoved = await moveReport(tx, report.id, state, change, document.validator);
    if (!isMoved) throw held();
    const moved: ReportRow = { ...report, ...change, state };
    if (endedAt === null) return moved;
    const { id: reportId, pod_id: podId, created_at: reportedMs } = report;
    const isConfirmed = state === 'confirmed';
    const refund = isConfirmed ? await refunds.refund(tx, { podId, reportId, reportedMs }) : 0;
    await setRefund(tx, reportId, refund);
    const ended = { ...moved, refund_uusd: refund };
    await notifyEnd(tx, deps, ended, lastShortfall(document));
    await clearDue(tx, 'report-expiry', reportId);
    return ended;
  }

  return {
    /**
     * Stores a report on the caller's pod. Throws `pod_not_found`, `pod_state_conflict`, `conflict` for a pod with an
     * open report, and `rate_limited`.
     */
    async report(
      tx: Db,
      { identity, podId }: { identity: UserIdentity; podId: string },
      request: PodReportRequest,
    ): Promise<PodReport> {
      const { accountId } = identity;
      await lockRow(tx, 'pods', podId);
      await lockAccount(tx, identity);
      const pod = await requireAnyOwnPod(tx, accountId, podId);
      const nowMs = clock.now();
      requireReportable(pod, await listEarlier(tx, accountId, nowMs - COUNTED_MS), nowMs);
      const row: ReportRow = {
        id: random.uuid(),
        pod_id: podId,
        account_id: accountId,
        executor_id: pod.executor_id,
        reason: request.reason,
        description: request.description ?? null,
        consent: request.consent ? 1 : 0,
        state: 'open',
        validator_hotkey: null,
        claimed_until: null,
        attempts: 0,
        refund_uusd: 0,
        evidence_json: null,
        created_at: nowMs,
        updated_at: nowMs,
        ended_at: null,
      };
      await insertReport(tx, row);
      await setDue(tx, 'report-expiry', row.id, nowMs + EXPIRY_MS);
      return toPodReport(row);
    },

    /** Lists the account's reports, newest first. */
    async list({ accountId }: UserIdentity, query: PodReportsQuery): Promise<PodReport[]> {
      const { limit, pod_id: podId } = query;
      return (await listReportsOf(db, accountId, { podId, limit })).map(toPodReport);
    },

    /** Claims the reports that no other validator examines, and returns them, oldest first. */
    async toExamine({ hotkey }: ValidatorIdentity): Promise<ReportToExamine[]> {
      const nowMs = clock.now();
      return db.transaction().execute(async (tx) => {
        const limit = MAX_REPORTS_AT_ONCE;
        const rows = await listToExamine(tx, { hotkey, nowMs, limit });
        const ids = rows.map(({ id }) => id);
        await claimReports(tx, ids, { hotkey, nowMs, untilMs: nowMs + CLAIM_MS });
        return rows.map(toExamineFrom);
      });
    },

    /**
     * Applies the signed outcome of a validator. A repeated outcome changes nothing. Throws `not_found`, 422 for an
     * invalid document, and `forbidden` for a report that another validator examines or that ended otherwise.
     */
    async recordOutcome(
      { hotkey }: ValidatorIdentity,
      id: string,
      signed: SignedReport,
    ): Promise<ReportedOutcome> {
      const document = readSignedReport(signed);
      if (document === null) throw invalidField('body.signature', 'Not a signed outcome');
      if (document.validator !== hotkey || document.report_id !== id) {
        throw invalidField('body.document', 'Concerns another report or validator');
      }
      const recorded = await moneyTransaction(deps, async (tx) => {
        const seen = await findReport(tx, id);
        if (seen === undefined) throw new ApiError('not_found', 'There is no such report');
        await refunds.lock(tx, seen.account_id);
        const report = (await findReport(tx, id)) ?? seen;
        const isRepeated = report.evidence_json === JSON.stringify(signed);
        const row = isRepeated ? report : await applyOutcome(tx, report, document, signed);
        return { status: row.state, refund: microToUsd(row.refund_uusd) };
      });
      deps.wakeMail();
      return recorded;
    },

    dueHandlers: {
      'report-expiry': {
        async run(tx, { subject, nowMs }) {
          const report = await findReport(tx, subject);
          if (report === undefined || !OPEN_STATES.includes(report.state)) return undefined;
          const change = { ended_at: nowMs, claimed_until: null, updated_at: nowMs };
          if (!(await moveReport(tx, subject, 'expired', change))) return undefined;
          await notifyEnd(tx, deps, { ...report, ...change, state: 'expired' }, null);
          return { after: deps.wakeMail };
        },
      },
    } satisfies DueHandlers,
  };
}

function held(): ApiError {
  return new ApiError('forbidden', 'The report has ended, or another validator examines it', {
    hint: 'Discard the outcome.',
  });
}

function toExamineFrom(row: Awaited<ReturnType<typeof listToExamine>>[number]): ReportToExamine {
  const { limits } = PodSpec.parse(JSON.parse(row.spec_json));
  const isChanged = (row.offer_changed_at ?? 0) > row.rented_at;
  return {
    id: row.id,
    pod_id: row.pod_id,
    executor_id: row.executor_id,
    reason: ReportReason.parse(row.reason),
    reported_ms: row.created_at,
    may_enter: row.consent === 1 && row.pod_state === 'running',
    offer: {
      gpu_type: isChanged ? null : row.gpu_type,
      gpu_count: row.gpu_count,
      cpu_cores: limits.cpu_cores,
      memory_bytes: limits.memory_bytes,
      disk_bytes: limits.disk_bytes ?? null,
    },
  };
}

const lastShortfall = ({ findings }: ReportDocument): string | null =>
  findings.findLast(({ shortfall }) => shortfall !== null)?.shortfall ?? null;

function toPodReport(row: ReportRow): PodReport {
  const evidence =
    row.evidence_json === null ? null : SignedReport.parse(JSON.parse(row.evidence_json));
  const document = evidence === null ? null : readSignedReport(evidence);
  return {
    id: row.id,
    pod_id: row.pod_id,
    executor_id: row.executor_id,
    reason: ReportReason.parse(row.reason),
    description: row.description ?? '',
    consent: row.consent === 1,
    status: row.state,
    refund: microToUsd(row.refund_uusd),
    finding: document === null ? null : lastShortfall(document),
    evidence,
    created_at: naiveUtc(row.created_at),
    ended_at: row.ended_at === null ? null : naiveUtc(row.ended_at),
  };
}
