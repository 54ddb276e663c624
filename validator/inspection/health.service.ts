/** Checks executors when they are due or on request. The result is stored and queued for delivery in one transaction. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type {
  CheckRequest,
  ExecutorToCheck,
  HealthReport,
  RoundTrip,
} from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { startLoop } from '#shared/runtime/loop.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import type { AgentIdentity, Facts, Policy } from '../checks/check.ts';
import type { CheckHistory } from '../checks/check-history.service.ts';
import type { Measured } from '../checks/measured.ts';
import type { ProofBaselines } from '../checks/proof-baseline.service.ts';
import { judgeAll } from '../checks/verdict.ts';
import type { CheckRun } from '../evidence/document.ts';
import type { EvidenceService } from '../evidence/evidence.service.ts';
import type { ValidatorMetrics } from '../metrics.ts';
import type { Outbox } from '../store/outbox.service.ts';
import { enqueue } from '../store/outbox.store.ts';
import type { ExecutorDirectory } from './executor-directory.ts';
import { healthMessage } from './health-delivery.ts';
import { type HostLocks, LONGEST_WAIT_MS } from './host-locks.ts';
import { NOT_QUERIED, readAgent, recheck, runProbe } from './inspect.ts';
import {
  CLAIM_MS,
  type InspectionQueue,
  type InspectionState,
  StaleVerdict,
} from './inspection-queue.ts';
import type { NetworkChecks } from './network-checks.ts';
import { type ProofPlace, type ProofRounds, unprovenIn } from './proof/proof-round.ts';
import type { RentalProbes } from './rental-probe/rental-probe.service.ts';
import { yieldedToRenter } from './rental-probe/rental-probe.ts';
import type { ReadBanner } from './rental-probe/ssh-session.ts';
import type { MeasureRoundTrip } from './round-trip.ts';

export type HealthService = ReturnType<typeof createHealthService>;

const PARALLEL_INSPECTIONS = 32;
/** Number of executors whose proofs begin together. */
const GROUP_SIZE = 64;

export type HealthOptions = {
  directory: Pick<ExecutorDirectory, 'ids' | 'drainChanged' | 'find'>;
  clientOf(executor: ExecutorToCheck): AgentClient;
  /** Identity of an agent that has just answered. */
  identityOf(executor: ExecutorToCheck): Promise<AgentIdentity>;
  clock: Clock;
  log: Log;
  policy: Policy;
  inspections: InspectionQueue;
  checkHistory: CheckHistory;
  /** Release facts about the image that an agent reports to run. */
  releases(running: string | null): Promise<Measured['releases']>;
  baselines: ProofBaselines;
  proofs: ProofRounds;
  network: NetworkChecks;
  /** Bandwidth facts; null if not measured. */
  lines: { facts(executorId: string): Promise<Measured['line']> };
  /** Round trip to an agent; absent: none is reported. */
  roundTrip?: MeasureRoundTrip;
  hosts: Pick<HostLocks, 'run'>;
  rentals: Pick<RentalProbes, 'probe' | 'clear' | 'podsAt'>;
  readBanner: ReadBanner;
  evidence: Pick<EvidenceService, 'record'>;
  outbox: Outbox;
  /** Maximum number of executors whose facts are in memory at the same time. */
  atOnce: number;
  metrics: Pick<ValidatorMetrics, 'checked' | 'passed'>;
};

/** `request` is null for a claimed executor that was due. */
type Trigger = { place: ProofPlace; request: CheckRequest | null };

export function createHealthService(options: HealthOptions) {
  const { directory, clock, log, inspections, checkHistory, proofs, outbox } = options;
  // Results are stored one after the other: a verdict depends on the claims of other executors.
  const recording = createSemaphore(1);
  const reading = createSemaphore(PARALLEL_INSPECTIONS);
  /** Listed executors of the last pass. */
  let listed: ReadonlySet<string> = new Set();

  async function check(executor: ExecutorToCheck, trigger: Trigger): Promise<HealthReport> {
    const startedMs = clock.now();
    const facts = await collectFacts(executor, trigger);
    const isClaimed = trigger.request === null;
    const isAnswering = facts.inventory !== null;
    const roundTrip = isAnswering ? ((await options.roundTrip?.(executor)) ?? null) : null;
    const report = await recording.run(() =>
      judgeAndRecord(facts, { startedMs, isClaimed, roundTrip }),
    );
    const reasons = report.checks.flatMap((result) => result.reason_code ?? []);
    log.info({ executor: executor.id, verdict: report.verdict, reasons }, 'executor checked');
    return report;
  }

  /** Runs the trials, which take long, before reading the host again: the verdict is about the host after them. */
  async function collectFacts(executor: ExecutorToCheck, trigger: Trigger): Promise<Facts> {
    const inspection = { ...options, client: options.clientOf(executor) };
    const first = await reading.run(() => readAgent(executor, inspection));
    const tried = await runLockedTrials(first, inspection.client, trigger);
    const facts = await reading.run(() => recheck(tried, inspection));
    const own_pods = await options.rentals.podsAt(executor.id, facts.receivedMs);
    // Only regular checks count as consecutive failures.
    const isRequested = trigger.request !== null;
    const unanswered = facts.measured.unanswered.map((each) => {
      return { ...each, repeated: each.repeated || isRequested };
    });
    return { ...facts, measured: { ...facts.measured, own_pods, unanswered } };
  }

  /** Runs the trials of an idle host under its lock; skips them if the lock is not free in time. */
  async function runLockedTrials(
    facts: Facts,
    client: AgentClient,
    trigger: Trigger,
  ): Promise<Facts> {
    const { executor, inventory } = facts;
    if (inventory === null || executor.rented) return runTrials(facts, client, trigger);
    const trials = () => runTrials(facts, client, trigger);
    const tried = await options.hosts.run(executor.id, LONGEST_WAIT_MS, trials);
    trigger.place.leave();
    return tried ?? facts;
  }

  /** Proofs begin once all executors of the group were read. */
  async function runTrials(facts: Facts, client: AgentClient, trigger: Trigger): Promise<Facts> {
    const { rentals, network } = options;
    const { request } = trigger;
    const isFree = await rentals.clear(facts.executor.id, client);
    const proven = await trigger.place.prove(facts, client, isFree);
    const reached = await network.check(facts, client, isFree);
    const rental = await rentals.probe(facts, client, request !== null);
    // Starts no probe container if a renter has arrived meanwhile.
    const container = yieldedToRenter(rental)
      ? NOT_QUERIED
      : await runProbe(facts, client, request);
    const unanswered = [...unprovenIn(proven), ...reached.unanswered, ...container.unanswered];
    const measured = { ...facts.measured, ...reached, ...proven, rental, unanswered };
    return { ...facts, probe: container.answer, measured };
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
    const { transportFailures, pauseMs, streaks, found } = state;
    const before = await checkHistory.load(collected);
    const line = await options.lines.facts(executorId);
    const releases = await options.releases(collected.inventory?.update?.current_digest ?? null);
    const known = { ...before, line, releases, streaks, found };
    const facts = { ...collected, measured: { ...collected.measured, ...known } };
    const judgement = judgeAll(facts, transportFailures);
    const { report } = judgement;
    const next = {
      transportFailures: facts.inventory === null ? transportFailures + 1 : 0,
      pauseMs,
      streaks: judgement.streaks,
      found: judgement.found,
    };
    const run = { facts, transportFailures, report, startedMs, finishedMs: clock.now() };
    try {
      await recordRun(run, next, { isClaimed, roundTrip });
    } catch (error) {
      if (!(error instanceof StaleVerdict)) throw error;
      log.info({ executor: executorId }, 'check came too late to count');
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
    // Not part of the evidence: it does not affect the verdict.
    const sent = { ...report, round_trip: roundTrip };
    const { message, replaces } = healthMessage(facts, sent, finishedMs);
    const { verdict, checked_at_ms: factsMs } = report;
    const ended = { ...next, executorId, verdict, checkedMs: finishedMs, factsMs };
    await options.evidence.record(run, async (tx) => {
      await inspections.end(tx, ended, isClaimed);
      await checkHistory.record(tx, facts, report);
      await enqueue(tx, message, replaces);
    });
  }

  async function checkClaimed(executorId: string, place: ProofPlace): Promise<void> {
    try {
      await check(await directory.find(executorId), { place, request: null });
      deliver();
    } catch (error) {
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
      while (due.length > 0) {
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
      options.metrics.passed(clock.monotonicMs() - beganMs, ids);
      await outbox.runOnce();
    },
    /** Checks one executor now. The result also goes to the central API by the outbox, in case the answer is lost. */
    async checkNow(executorId: string, request: CheckRequest): Promise<HealthReport> {
      const found = await directory.find(executorId);
      const executor = { ...found, rented: found.rented || request.rental_in_progress };
      const report = await check(executor, { place: proofs.begin(1).place(), request });
      deliver();
      return report;
    },
  };
}
