/** Checks executors when they are due or on request. The result is stored and queued for delivery in one transaction. */
import type {
  CheckRequest,
  ExecutorToCheck,
  HealthReport,
  RoundTrip,
} from '#shared/api/central/validator-routes.ts';
import { unlessAborted } from '#shared/runtime/abort.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { startLoop } from '#shared/runtime/loop.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import type { Facts } from '../checks/check.ts';
import type { CheckHistory } from '../checks/check-history.service.ts';
import type { Measured } from '../checks/measured.ts';
import type { ProofBaselines } from '../checks/proof-baseline.service.ts';
import { recordAfter } from '../checks/proof-record.ts';
import { judgeAll } from '../checks/verdict.ts';
import type { CheckRun } from '../evidence/document.ts';
import type { EvidenceService } from '../evidence/evidence.service.ts';
import type { ValidatorMetrics } from '../metrics.ts';
import type { Outbox } from '../store/outbox.service.ts';
import { enqueue } from '../store/outbox.store.ts';
import { createFactsCollector, type FactsOptions, type Trigger } from './collect-facts.ts';
import type { ExecutorDirectory } from './executor-directory.ts';
import { healthMessage } from './health-delivery.ts';
import {
  CLAIM_MS,
  type InspectionQueue,
  type InspectionState,
  StaleVerdict,
} from './inspection-queue.ts';
import type { ProofPlace, ProofRounds } from './proof/proof-round.ts';
import type { ReportedNodes } from './reports/reported-nodes.service.ts';
import type { MeasureRoundTrip } from './round-trip.ts';

export type HealthService = ReturnType<typeof createHealthService>;

/** Number of executors whose proofs begin together. */
const GROUP_SIZE = 64;

export type HealthOptions = FactsOptions & {
  directory: Pick<ExecutorDirectory, 'ids' | 'drainChanged' | 'find'>;
  log: Log;
  inspections: InspectionQueue;
  checkHistory: CheckHistory;
  /** Release facts about the image that an agent reports to run. */
  releases(running: string | null): Promise<Measured['releases']>;
  baselines: ProofBaselines;
  proofs: ProofRounds;
  /** Bandwidth facts; null if not measured. */
  lines: { facts(executorId: string): Promise<Measured['line']> };
  /** Result of the last hidden rental that counts; null without one. */
  hiddenRentals: { facts(executorId: string): Promise<Measured['hidden_rental']> };
  /** Round trip to an agent; if absent, no round trip is reported. */
  roundTrip?: MeasureRoundTrip;
  reported: Pick<ReportedNodes, 'rentalSince' | 'confirmedOn' | 'clear'>;
  evidence: Pick<EvidenceService, 'record'>;
  outbox: Outbox;
  /** Aborts when the process stops; its reason is the error of abandoned checks. */
  stopping: AbortSignal;
  /** Maximum number of executors whose facts are in memory at the same time. */
  atOnce: number;
  metrics: Pick<ValidatorMetrics, 'checked' | 'passed'>;
};

export function createHealthService(options: HealthOptions) {
  const { directory, clock, log, inspections, checkHistory, proofs, outbox, stopping } = options;
  // Results are stored one after the other: a verdict depends on the claims of other executors.
  const recording = createSemaphore(1);
  const collectFacts = createFactsCollector(options);
  /** Listed executors of the last pass. */
  let listed: ReadonlySet<string> = new Set();

  /**
   * Checks an executor. When the process stops, rejects without a result: facts that are cut off change no verdict. A
   * result that is being stored is completed.
   */
  async function check(executor: ExecutorToCheck, trigger: Trigger): Promise<HealthReport> {
    const startedMs = clock.now();
    const { facts, roundTrip } = await unlessAborted(stopping, () => measure(executor, trigger));
    const isClaimed = trigger.request === null;
    const report = await recording.run(() => {
      stopping.throwIfAborted();
      return judgeAndRecord(facts, { startedMs, isClaimed, roundTrip });
    });
    const reasons = report.checks.flatMap((result) => result.reason_code ?? []);
    log.info({ executor: executor.id, verdict: report.verdict, reasons }, 'executor checked');
    return report;
  }

  async function measure(executor: ExecutorToCheck, trigger: Trigger) {
    const facts = await collectFacts(executor, trigger);
    const isAnswering = facts.inventory !== null;
    const roundTrip = isAnswering ? ((await options.roundTrip?.(executor)) ?? null) : null;
    return { facts, roundTrip };
  }

  async function judgeAndRecord(
    collected: Facts,
    {
      startedMs,
      isClaimed,
      roundTrip,
    }: { startedMs: number; isClaimed: boolean; roundTrip: RoundTrip | null },
  ): Promise<HealthReport> {
    const { id: executorId } = collected.executor;
    const state = await inspections.load(executorId);
    const { streaks, streakTimes: streak_times, found } = state;
    const transportFailures = inspections.countedFailures(state);
    const proof_record = recordAfter(state.proofRecord, collected);
    const tried = { ...collected, measured: { ...collected.measured, proof_record } };
    const before = await checkHistory.load(tried);
    const line = await options.lines.facts(executorId);
    const renter_report = await options.reported.confirmedOn(executorId);
    const hidden_rental = await options.hiddenRentals.facts(executorId);
    const releases = await options.releases(collected.inventory?.update?.current_digest ?? null);
    const memory = { streaks, streak_times, found, interval_ms: inspections.intervalMs };
    const facts = {
      ...tried,
      measured: {
        ...tried.measured,
        ...before,
        line,
        hidden_rental,
        releases,
        renter_report,
        ...memory,
      },
    };
    const judgement = judgeAll(facts, transportFailures);
    const { report } = judgement;
    const next = {
      ...state,
      ...inspections.reachabilityAfter(state, facts.inventory !== null),
      streaks: judgement.streaks,
      streakTimes: judgement.streakTimes,
      found: judgement.found,
      proofRecord: proof_record,
    };
    const run = { facts, transportFailures, report, startedMs, finishedMs: clock.now() };
    try {
      await recordRun(run, next, { isClaimed, roundTrip });
    } catch (error) {
      if (!(error instanceof StaleVerdict)) throw error;
      log.info({ executor: executorId }, 'check result dropped, newer facts are stored');
      if (isClaimed) await inspections.release(executorId);
      return report;
    }
    await options.baselines.record(facts);
    options.metrics.checked(executorId, report);
    return report;
  }

  /** Stores evidence, inspection state, check history and the outbox message in one transaction. */
  async function recordRun(
    run: CheckRun,
    next: InspectionState,
    { isClaimed, roundTrip }: { isClaimed: boolean; roundTrip: RoundTrip | null },
  ): Promise<void> {
    const { facts, report, finishedMs } = run;
    const { id: executorId } = facts.executor;
    // Not part of the evidence, because it does not affect the verdict.
    const sent = { ...report, round_trip: roundTrip };
    const { message, replaces } = healthMessage(facts, sent, finishedMs);
    const { verdict, checked_at_ms: factsMs } = report;
    const ended = { ...next, executorId, verdict, checkedMs: finishedMs, factsMs };
    await options.evidence.record(run, async (tx) => {
      await inspections.end(tx, ended, isClaimed);
      await checkHistory.record(tx, facts, report);
      await options.reported.clear(tx, facts);
      await enqueue(tx, message, replaces);
    });
  }

  async function checkClaimed(executorId: string, place: ProofPlace): Promise<void> {
    try {
      await check(await directory.find(executorId), { place, request: null });
      deliver();
    } catch (error) {
      if (!stopping.aborted)
        log.warn({ executor: executorId, error: messageOf(error) }, 'check failed to be recorded');
      await inspections.release(executorId);
    } finally {
      place.leave();
    }
  }

  /** Starts a delivery; undelivered messages are retried later. */
  function deliver(): void {
    outbox.runOnce().catch((error: unknown) => log.error({ err: error }, 'outbox pass failed'));
  }

  /** Claims expire unless they are extended. */
  const extendClaims = () =>
    startLoop({
      clock,
      intervalMs: CLAIM_MS / 4,
      run: inspections.extendClaims,
      onError: (error) => log.error({ err: error }, 'inspection claims failed to extend'),
    });

  /** Checks groups, several in parallel, so that a slow executor delays only its group. */
  async function checkAll(due: string[]): Promise<void> {
    const size = Math.min(GROUP_SIZE, options.atOnce);
    const extending = extendClaims();
    async function work(): Promise<void> {
      while (due.length > 0 && !stopping.aborted) {
        const claimed = await inspections.claim(due.splice(0, size));
        const round = proofs.begin(claimed.length);
        await Promise.all(claimed.map((id) => checkClaimed(id, round.place())));
      }
    }
    try {
      await Promise.all(Array.from({ length: Math.ceil(options.atOnce / size) }, work));
    } finally {
      await extending.stop();
    }
  }

  return {
    /** Checks all due executors; a failed check does not stop the others. */
    async runOnce(): Promise<void> {
      const beganMs = clock.monotonicMs();
      const ids = await directory.ids();
      await inspections.sync(ids);
      await inspections.resetPauses(directory.drainChanged());
      proofs.retain(ids);
      options.network.retain(ids);
      if (ids.symmetricDifference(listed).size > 0) await checkHistory.deleteOthers(ids);
      listed = ids;
      const due = (await inspections.due()).filter((id) => ids.has(id));
      if (due.length > 0) await checkAll(due);
      if (stopping.aborted) return;
      options.metrics.passed(clock.monotonicMs() - beganMs, ids);
      await outbox.runOnce();
    },
    /** Checks one executor now. The outbox also sends the result to the central API, in case the response is lost. */
    async checkNow(executorId: string, request: CheckRequest): Promise<HealthReport> {
      const found = await directory.find(executorId);
      const executor = { ...found, rented: found.rented || request.rental_in_progress };
      const report = await check(executor, { place: proofs.begin(1).place(), request });
      deliver();
      return report;
    },
  };
}
