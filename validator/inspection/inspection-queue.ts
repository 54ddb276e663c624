/** Queue of inspections in the evidence store: which executors are due, which process claimed them, and their state between inspections. */
import type { HealthReport } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { ClockTrust } from '#shared/runtime/guarded-clock.ts';
import type { OpenFailure, ProofRecord } from '../checks/measured.ts';
import { TRANSPORT_FAILURES_ALLOWED } from '../checks/verdict.ts';
import { isShared } from '../store/evidence-store.ts';
import type { EvidenceStore, StoreDb } from '../store/tables.ts';
import {
  claimInspections,
  type Due,
  dueInspections,
  endInspection,
  extendClaims,
  findInspection,
  reachableExecutors,
  recordUnclaimedInspection,
  releaseInspection,
  resetPauses,
  syncInspections,
} from './inspection.store.ts';

/** Duration of a claim that is not extended. Then other processes may claim the executors of a killed process. */
export const CLAIM_MS = 12_000;

export type InspectionQueue = ReturnType<typeof createInspectionQueue>;

export type InspectionQueueOptions = {
  store: EvidenceStore;
  clock: Clock;
  /** Unique id of this process. */
  holder: string;
  /** While the clock is suspect, silence of an agent does not count. */
  trust: Pick<ClockTrust, 'isSuspect' | 'resumedAtMs'>;
  /** Milliseconds between two inspections of a verified executor. */
  intervalMs: number;
  /** Shortest time in milliseconds between two inspections of an executor that is not verified, whatever its pause. */
  pauseMs: number;
};

/** Inspections without an answer of the agent. */
export type Reachability = {
  /** Consecutive inspections without an answer, as far as they count. */
  transportFailures: number;
  /** Time of the first of them; 0 if they count without a minimum time; null while the agent answers. */
  unreachableSinceMs: number | null;
};

/** State that is passed from one inspection of an executor to the next. */
export type Memory = Reachability & {
  /** Consecutive failures by check, for reasons that count only when repeated. */
  streaks: Record<string, number>;
  /** Time of the last failure that a streak counts, by check. */
  streakTimes: Record<string, number>;
  /** Failures that no later run has resolved, by check. */
  found: Record<string, OpenFailure>;
  /** Offered and passed proofs; null before the first inspection. */
  proofRecord: ProofRecord | null;
};

/** `pauseMs` is the pause that followed the last inspection. */
export type InspectionState = Memory & {
  pauseMs: number | null;
  /** Verdict of the last inspection; null before the first. */
  verdict: HealthReport['verdict'] | null;
};

export type InspectionEnd = InspectionState & {
  executorId: string;
  verdict: HealthReport['verdict'];
  checkedMs: number;
  /** Time at which the facts of the verdict were read, by this clock. */
  factsMs: number;
};

/**
 * Largest difference between the clocks of two processes. Stored facts further in the future predate a clock
 * correction.
 */
const CLOCKS_APART_MS = 60_000;

/** Thrown when a verdict on newer facts is already stored; the older run stores nothing. */
export class StaleVerdict extends Error {}

export function createInspectionQueue(options: InspectionQueueOptions) {
  const { store, clock, holder, trust } = options;
  const startedMs = clock.now();

  function dueNow(): Due {
    const nowMs = clock.now();
    return {
      nowMs,
      verifiedMs: nowMs - options.intervalMs,
      otherMs: nowMs - options.pauseMs,
      // Only one process uses a file, so claims of an earlier process have expired.
      freeMs: isShared(store) ? nowMs : Number.MAX_SAFE_INTEGER,
    };
  }

  return {
    intervalMs: options.intervalMs,

    /** Adds newly listed executors and deletes unlisted ones. */
    sync: (executorIds: ReadonlySet<string>) =>
      syncInspections(store, executorIds, dueNow().freeMs),

    /** Makes executors whose listing changed due at once if their last inspection did not pass. */
    resetPauses: (executorIds: readonly string[]) => resetPauses(store, executorIds),

    /** Executors that are due and unclaimed. */
    due: (): Promise<string[]> => dueInspections(store, dueNow()),

    /** Claims executors that are still due; the claim lasts while this process calls `extendClaims`. */
    claim: (executorIds: readonly string[]): Promise<string[]> =>
      claimInspections(store, executorIds, {
        due: dueNow(),
        holder,
        untilMs: clock.now() + CLAIM_MS,
      }),

    /** Executors whose agent answered in the last inspection. */
    reachable: (): Promise<Set<string>> => reachableExecutors(store),

    extendClaims: () => extendClaims(store, holder, clock.now() + CLAIM_MS),

    release: (executorId: string) => releaseInspection(store, executorId, holder),

    async load(executorId: string): Promise<InspectionState> {
      const row = await findInspection(store, executorId);
      if (row === undefined) return NEVER_INSPECTED;
      // This module wrote the JSON.
      const streaks = JSON.parse(row.streaks_json) as Record<string, number>;
      const streakTimes = JSON.parse(row.streak_times_json) as Record<string, number>;
      const found = JSON.parse(row.found_json) as Record<string, OpenFailure>;
      const proofRecord = JSON.parse(row.proof_record_json) as ProofRecord | null;
      const { transport_failures: transportFailures, pause_ms: pauseMs, verdict } = row;
      const { unreachable_since_ms: unreachableSinceMs } = row;
      const reached = { transportFailures, unreachableSinceMs };
      const memory = { streaks, streakTimes, found, proofRecord };
      return { ...reached, ...memory, pauseMs, verdict };
    },

    /** Returns the reachability after one more inspection. */
    reachabilityAfter(before: InspectionState, isAnswered: boolean): Reachability {
      if (!isAnswered && trust.isSuspect()) return before;
      const watchedMs = Math.max(startedMs, trust.resumedAtMs());
      const { intervalMs } = options;
      return reachabilityAfter(before, {
        isAnswered,
        nowMs: clock.now(),
        startedMs: watchedMs,
        intervalMs,
      });
    },

    /** Returns the consecutive inspections without an answer that count for a verdict now. */
    countedFailures: ({ transportFailures }: Reachability): number =>
      trust.isSuspect() ? 0 : transportFailures,

    /**
     * Stores the result in the transaction that records the run. Throws StaleVerdict, or an Error if another process
     * has taken over the claim. The other process's result then counts.
     */
    async end(tx: StoreDb, ended: InspectionEnd, isClaimed: boolean): Promise<void> {
      const { executorId: id, verdict } = ended;
      const inspected = { verdict, isRegular: isClaimed, before: ended.pauseMs };
      const latestMs = clock.now() + CLOCKS_APART_MS;
      const result = {
        executor_id: id,
        checked_ms: ended.checkedMs,
        verdict,
        facts_ms: ended.factsMs,
        pause_ms: pauseAfter({ ...inspected, intervalMs: options.intervalMs }),
        transport_failures: ended.transportFailures,
        unreachable_since_ms: ended.unreachableSinceMs,
        streaks_json: JSON.stringify(ended.streaks),
        streak_times_json: JSON.stringify(ended.streakTimes),
        found_json: JSON.stringify(ended.found),
        proof_record_json: JSON.stringify(ended.proofRecord),
      };
      const isStored = isClaimed
        ? await endInspection(tx, result, { holder, latestMs })
        : await recordUnclaimedInspection(tx, result, latestMs);
      if (isStored) return;
      if (!isClaimed || (await findInspection(tx, id))?.holder === holder) {
        throw new StaleVerdict('a verdict on newer facts is stored');
      }
      throw new Error('another process has taken over this executor');
    },
  };
}

const NEVER_INSPECTED: InspectionState = {
  transportFailures: 0,
  unreachableSinceMs: null,
  pauseMs: null,
  verdict: null,
  streaks: {},
  streakTimes: {},
  found: {},
  proofRecord: null,
};

/**
 * Returns the reachability after an inspection. An executor that had not failed before fails only after a whole check
 * interval without an answer, so that a restart of its agent or a reboot of its host does not fail it. Time before this
 * process started does not count, because this process did not observe the agent then. Pure.
 */
export function reachabilityAfter(
  {
    transportFailures,
    unreachableSinceMs,
    verdict,
  }: Reachability & Pick<InspectionState, 'verdict'>,
  {
    isAnswered,
    nowMs,
    startedMs,
    intervalMs,
  }: { isAnswered: boolean; nowMs: number; startedMs: number; intervalMs: number },
): Reachability {
  if (isAnswered) return { transportFailures: 0, unreachableSinceMs: null };
  const failures = transportFailures + 1;
  const isUnprotected = verdict === null || verdict === 'failed' || unreachableSinceMs === 0;
  if (isUnprotected) return { transportFailures: failures, unreachableSinceMs: 0 };
  // A clock that was set back does not prolong the time.
  const firstMs = Math.min(unreachableSinceMs ?? nowMs, nowMs);
  const sinceMs = Math.max(firstMs, startedMs);
  const isLong = nowMs - sinceMs >= intervalMs;
  const counted = isLong ? failures : Math.min(failures, TRANSPORT_FAILURES_ALLOWED - 1);
  return { transportFailures: counted, unreachableSinceMs: sinceMs };
}

const FIRST_PAUSE_MS = 1_000;
/** Limits an executor that never passes to 144 documents a day, so that the 50,000 retained ones cover 11 months. */
const LONGEST_PAUSE_MS = 600_000;

export type Inspected = {
  verdict: HealthReport['verdict'];
  /** False for an inspection on request, which does not lengthen the pause. */
  isRegular: boolean;
  /**
   * Pause before this inspection; null if the executor had passed, its listing had changed, or it was never inspected.
   */
  before: number | null;
  /** Interval of verified executors; no pause is longer. */
  intervalMs: number;
};

/** Milliseconds until the next inspection; null after a pass: the regular interval then applies. */
export function pauseAfter({ verdict, isRegular, before, intervalMs }: Inspected): number | null {
  if (verdict === 'verified') return null;
  if (!isRegular) return before;
  if (before === null) return 0;
  return Math.min(Math.max(before * 2, FIRST_PAUSE_MS), LONGEST_PAUSE_MS, intervalMs);
}
