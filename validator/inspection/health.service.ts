/** Checks executors when they are due, or at once when asked; what it found is kept and on its way before it counts. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type {
  CheckRequest,
  ExecutorToCheck,
  HealthReport,
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

export type HealthService = ReturnType<typeof createHealthService>;

const PARALLEL_INSPECTIONS = 32;
/** Whose proofs begin together. */
const GROUP = 64;

export type HealthOptions = {
  directory: Pick<ExecutorDirectory, 'ids' | 'drainChanged' | 'find'>;
  clientOf(executor: ExecutorToCheck): AgentClient;
  /** Of an agent that has just answered. */
  identityOf(executor: ExecutorToCheck): Promise<AgentIdentity>;
  clock: Clock;
  log: Log;
  policy: Policy;
  inspections: InspectionQueue;
  checkHistory: CheckHistory;
  /** What is known of the image that an agent says it runs. */
  releases(running: string | null): Promise<Measured['releases']>;
  baselines: ProofBaselines;
  proofs: ProofRounds;
  ways: NetworkChecks;
  /** How fast its line was; null: not measured, or not known. */
  lines: { facts(executorId: string): Promise<Measured['line']> };
  hosts: Pick<HostLocks, 'run'>;
  rentals: Pick<RentalProbes, 'look' | 'clear' | 'podsAt'>;
  readBanner: ReadBanner;
  evidence: Pick<EvidenceService, 'record'>;
  outbox: Outbox;
  /** Executors whose facts are in memory at a time. */
  atOnce: number;
  metrics: Pick<ValidatorMetrics, 'checked' | 'passed'>;
};

/** `wish`: of whoever asked for it; null for an executor that was due, and is claimed. */
type Look = { place: ProofPlace; wish: CheckRequest | null };

export function createHealthService(options: HealthOptions) {
  const { directory, clock, log, inspections, checkHistory, proofs, outbox } = options;
  // What one executor has is settled before another one’s is looked at.
  const settling = createSemaphore(1);
  const places = createSemaphore(PARALLEL_INSPECTIONS);
  /** Executors that may have a check history. */
  let remembered: ReadonlySet<string> = new Set();

  async function check(executor: ExecutorToCheck, how: Look): Promise<HealthReport> {
    const startedMs = clock.now();
    const facts = await look(executor, how);
    const isClaimed = how.wish === null;
    const report = await settling.run(() => settle(facts, { startedMs, isClaimed }));
    const reasons = report.checks.flatMap((result) => result.reason_code ?? []);
    log.info({ executor: executor.id, verdict: report.verdict, reasons }, 'executor checked');
    return report;
  }

  /** What takes long comes first, so that the verdict is on the host as it is afterwards. */
  async function look(executor: ExecutorToCheck, how: Look): Promise<Facts> {
    const inspection = { ...options, client: options.clientOf(executor) };
    const first = await places.run(() => readAgent(executor, inspection));
    const tried = await tryOut(first, inspection.client, how);
    const facts = await places.run(() => recheck(tried, inspection));
    const own_pods = await options.rentals.podsAt(executor.id, facts.receivedMs);
    // Who asks often sees the same thing often: only the regular checks are in a row.
    const isAsked = how.wish !== null;
    const unanswered = facts.measured.unanswered.map((each) => {
      return { ...each, repeated: each.repeated || isAsked };
    });
    return { ...facts, measured: { ...facts.measured, own_pods, unanswered } };
  }

  /** What an idle host is tried by, one trial at a time; where others do not let go of it, by nothing. */
  async function tryOut(facts: Facts, client: AgentClient, how: Look): Promise<Facts> {
    const { executor, inventory } = facts;
    if (inventory === null || executor.rented) return runTrials(facts, client, how);
    const trials = () => runTrials(facts, client, how);
    const tried = await options.hosts.run(executor.id, LONGEST_WAIT_MS, trials);
    how.place.leave();
    return tried ?? facts;
  }

  /** Proofs begin when every other executor of the group has been looked at, too. */
  async function runTrials(facts: Facts, client: AgentClient, how: Look): Promise<Facts> {
    const { rentals, ways } = options;
    const { id } = facts.executor;
    const isFree = await rentals.clear(id, client);
    const proven = await how.place.prove(facts, client, isFree);
    const known = await ways.look(facts, client, isFree);
    const rental = await rentals.look(facts, client, how.wish !== null);
    // Whoever rents it now is not disturbed.
    const container = yieldedToRenter(rental)
      ? NOT_QUERIED
      : await runProbe(facts, client, how.wish);
    const unanswered = [...unprovenIn(proven), ...known.unanswered, ...container.unanswered];
    const measured = { ...facts.measured, ...known, ...proven, rental, unanswered };
    return { ...facts, probe: container.answer, measured };
  }

  async function settle(
    seen: Facts,
    { startedMs, isClaimed }: { startedMs: number; isClaimed: boolean },
  ): Promise<HealthReport> {
    const recalled = await inspections.recall(seen.executor.id);
    const { transportFailures, pauseMs, streaks, found } = recalled;
    const before = await checkHistory.load(seen);
    const line = await options.lines.facts(seen.executor.id);
    const releases = await options.releases(seen.inventory?.update?.current_digest ?? null);
    const known = { ...before, line, releases, streaks, found };
    const facts = { ...seen, measured: { ...seen.measured, ...known } };
    const judgement = judgeAll(facts, transportFailures);
    const { report } = judgement;
    const memory = {
      transportFailures: facts.inventory === null ? transportFailures + 1 : 0,
      pauseMs,
      streaks: judgement.streaks,
      found: judgement.found,
    };
    const run = { facts, transportFailures, report, startedMs, finishedMs: clock.now() };
    try {
      await keep(run, memory, isClaimed);
    } catch (error) {
      if (!(error instanceof StaleVerdict)) throw error;
      log.info({ executor: facts.executor.id }, 'check came too late to count');
      if (isClaimed) await inspections.release(facts.executor.id);
      return report;
    }
    await options.baselines.record(facts);
    options.metrics.checked(facts.executor.id, report);
    return report;
  }

  /** All of it or nothing: that it was looked at, what it stands by, the evidence, and the letter that tells of it. */
  async function keep(run: CheckRun, memory: InspectionState, isClaimed: boolean): Promise<void> {
    const { facts, report, finishedMs } = run;
    const { id: executorId } = facts.executor;
    const { message, replaces } = healthMessage(facts, report, finishedMs);
    const { verdict, checked_at_ms: factsMs } = report;
    const ended = { ...memory, executorId, verdict, checkedMs: finishedMs, factsMs };
    await options.evidence.record(run, async (tx) => {
      await inspections.end(tx, ended, isClaimed);
      await checkHistory.record(tx, facts, report);
      await enqueue(tx, message, replaces);
    });
  }

  async function checkClaimed(executorId: string, place: ProofPlace): Promise<void> {
    try {
      await check(await directory.find(executorId), { place, wish: null });
      tell();
    } catch (error) {
      log.warn({ executor: executorId, error: messageOf(error) }, 'check not kept');
      await inspections.release(executorId);
    } finally {
      place.leave();
    }
  }

  /** What cannot be told now is told later. */
  function tell(): void {
    outbox.runOnce().catch((error: unknown) => log.error({ err: error }, 'outbox failed'));
  }

  /** Claims lapse unless somebody says that we are alive. */
  const holdOn = () =>
    startLoop({
      clock,
      intervalMs: CLAIM_MS / 4,
      run: inspections.hold,
      onError: (error) => log.error({ err: error }, 'executors could not be held'),
    });

  /** Group by group, a few beside each other: one that is slow holds up its own alone. */
  async function checkAll(due: string[]): Promise<void> {
    const size = Math.min(GROUP, options.atOnce);
    const holding = holdOn();
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
      await holding.stop();
    }
  }

  return {
    /** One pass over what is due, group by group; one that fails stops no other. */
    async runOnce(): Promise<void> {
      const beganMs = clock.monotonicMs();
      const ids = await directory.ids();
      await inspections.follow(ids);
      await inspections.changed(directory.drainChanged());
      proofs.keep(ids);
      options.ways.keep(ids);
      if (ids.symmetricDifference(remembered).size > 0) await checkHistory.deleteOthers(ids);
      remembered = ids;
      const due = (await inspections.due()).filter((id) => ids.has(id));
      if (due.length > 0) await checkAll(due);
      options.metrics.passed(clock.monotonicMs() - beganMs, ids);
      await outbox.runOnce();
    },
    /**
     * Inspects one executor now, as is wished. What it finds is told to the central API as well, should the answer
     * be lost.
     */
    async checkNow(executorId: string, wish: CheckRequest): Promise<HealthReport> {
      const listed = await directory.find(executorId);
      const executor = { ...listed, rented: listed.rented || wish.rental_in_progress };
      const report = await check(executor, { place: proofs.begin(1).place(), wish });
      tell();
      return report;
    },
  };
}
