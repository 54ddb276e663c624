/**
 * Examines renters' reports: inside the pod with the renter's consent, otherwise with a test rental in the first free
 * moment of the node. Findings and decisions are stored before they are sent, so a killed process repeats nothing that
 * counts.
 */
import {
  ReportFinding,
  type ReportOutcome,
  type ReportToExamine,
  signReport,
} from '#shared/api/central/pod-reports.ts';
import type { ExecutorToCheck } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Heartbeat } from '#shared/runtime/liveness.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Signer } from '#shared/signing/sr25519.ts';
import type { CentralClient } from '../../central-client.ts';
import type { RentalFacts } from '../../checks/measured.ts';
import type { Outbox } from '../../store/outbox.service.ts';
import { enqueue } from '../../store/outbox.store.ts';
import type { EvidenceStore, PodReportRow, StoreDb } from '../../store/tables.ts';
import { findingOf, nextStep } from './examination.plan.ts';
import { type LookDeps, lookInside } from './look-inside.ts';
import { changeReport, decideReport, findReport, syncReports } from './report.store.ts';

/** Attempts to enter a pod; then only a test rental decides. */
const MAX_LOOKS = 3;
/** Findings that a report keeps; the newest decide. */
const MAX_FINDINGS = 16;
/** Time for which decided reports are kept. */
const KEPT_MS = 30 * 86_400_000;

/**
 * Rents a free node and compares what a renter gets with its offer. Resolves with a result after `sinceMs`; null if the
 * node is not free.
 */
export type RentNode = (executor: ExecutorToCheck, sinceMs: number) => Promise<RentalFacts | null>;

export type ReportExaminerOptions = LookDeps & {
  store: EvidenceStore;
  clock: Clock;
  log: Log;
  signer: Signer;
  central: Pick<CentralClient, 'claimReports'>;
  outbox: Pick<Outbox, 'runOnce'>;
  /** Listed executors. */
  known(): readonly ExecutorToCheck[];
  rentNode: RentNode;
  /** Inspects the executor, so that a confirmed report fails it at once. */
  recheck(executorId: string): Promise<unknown>;
  /** Returns false while another process that shares the store examines reports. */
  holdsLease(): Promise<boolean>;
  /** Records progress after each report. */
  beatAfter: Heartbeat['beatAfter'];
  /** Interval of inspections: the pause after an attempt. */
  intervalMs: number;
};

export type ReportExaminer = ReturnType<typeof createReportExaminer>;

export function createReportExaminer(options: ReportExaminerOptions) {
  const { store, clock, log, signer, central, outbox, rentNode, intervalMs } = options;

  /** Signs the outcome and queues it. A decision is final; an examination that could not be made is repeated. */
  async function conclude(
    report: ReportToExamine,
    outcome: ReportOutcome,
    findings: readonly ReportFinding[],
  ): Promise<void> {
    const { id, pod_id, executor_id } = report;
    const nowMs = clock.now();
    const named = { v: 1, report_id: id, pod_id, executor_id, validator: signer.hotkey } as const;
    const document = { ...named, examined_at: nowMs, outcome, findings: [...findings] };
    const signed = await signReport(document, signer);
    const isStored = await store.transaction().execute(async (tx) => {
      const findings_json = JSON.stringify(findings);
      if (outcome === 'unexamined') {
        await changeReport(tx, id, { findings_json, next_ms: nowMs + intervalMs });
      } else {
        const decision = { findings_json, outcome, decided_ms: nowMs, ...signed };
        if (!(await decideReport(tx, id, decision))) return false;
      }
      await queue(tx, id, signed, nowMs);
      return true;
    });
    if (!isStored) return;
    log.info({ report: id, executor: executor_id, outcome }, 'report examined');
    if (outcome !== 'confirmed') return;
    await options
      .recheck(executor_id)
      .catch((error: unknown) => log.warn({ executor: executor_id, err: error }, 'check failed'));
  }

  /** Returns the finding inside the pod; null if the pod may not or could not be entered. */
  async function lookIfAllowed(
    report: ReportToExamine,
    executor: ExecutorToCheck,
    { looks }: PodReportRow,
  ): Promise<ReportFinding | null> {
    if (!report.may_enter || looks >= MAX_LOOKS) return null;
    await changeReport(store, report.id, { looks: looks + 1 });
    return lookInside(options, executor, report).catch((error: unknown) => {
      log.warn({ report: report.id, error: messageOf(error) }, 'reported pod not examined');
      return null;
    });
  }

  async function examine(report: ReportToExamine, executor: ExecutorToCheck): Promise<void> {
    const row = await findReport(store, report.id);
    if (row === undefined || row.outcome !== null || row.next_ms > clock.now()) return;
    const earlier = ReportFinding.array().parse(JSON.parse(row.findings_json));
    const inside = earlier.length === 0 ? await lookIfAllowed(report, executor, row) : null;
    const findings = inside === null ? earlier : [inside];
    const step = nextStep(report.reason, findings);
    if (step !== 'test_rental') return conclude(report, step, findings);
    if (inside !== null) {
      await changeReport(store, report.id, { findings_json: JSON.stringify(findings) });
    }
    return rent(report, executor, { findings, againMs: row.next_ms });
  }

  async function rent(
    report: ReportToExamine,
    executor: ExecutorToCheck,
    { findings, againMs }: { findings: readonly ReportFinding[]; againMs: number },
  ): Promise<void> {
    const last = findings.findLast(({ means }) => means === 'test_rental');
    // Two test rentals that count are a full interval apart.
    const nextMs = last === undefined ? 0 : last.at + intervalMs;
    const sinceMs = Math.max(report.reported_ms, againMs, nextMs);
    if (sinceMs > clock.now()) return;
    const rental = await rentNode(executor, sinceMs);
    // A node that is not free does not count as an attempt.
    if (rental === null || (rental.status === 'not_run' && !rental.refused)) return;
    const finding = findingOf(report.reason, rental);
    if (finding === null) return conclude(report, 'unexamined', findings);
    const all = [...findings, finding].slice(-MAX_FINDINGS);
    const step = nextStep(report.reason, all);
    if (step !== 'test_rental') return conclude(report, step, all);
    await changeReport(store, report.id, { findings_json: JSON.stringify(all) });
  }

  return {
    /**
     * Claims reports and examines those that are due, one after the other. One failure does not stop the others. Does
     * nothing while the central API does not answer.
     */
    async runOnce(): Promise<void> {
      if (!(await options.holdsLease())) return;
      const reports = await central.claimReports().catch((error: unknown) => {
        log.warn({ error: messageOf(error) }, 'reports of renters failed to load');
        return null;
      });
      if (reports === null) return;
      await syncReports(store, reports, clock.now() - KEPT_MS);
      if (reports.length === 0) return;
      const executors = new Map(options.known().map((executor) => [executor.id, executor]));
      for (const report of reports) {
        const executor = executors.get(report.executor_id);
        if (executor === undefined) continue;
        const examined = options.beatAfter(() => examine(report, executor));
        await examined.catch((error: unknown) =>
          log.warn({ report: report.id, err: error }, 'report not examined'),
        );
      }
      await outbox.runOnce();
    },
  };
}

/** Queues an outcome; an outcome that was not sent yet is replaced by a later one. */
async function queue(tx: StoreDb, id: string, signed: object, nowMs: number): Promise<void> {
  const body = JSON.stringify(signed);
  const partitionKey = `report-outcome ${id}`;
  const message = { kind: 'report-outcome', subject: id, partitionKey, rank: 0, body } as const;
  await enqueue(tx, { ...message, next_ms: nowMs }, 0);
}
