/** Which executors are due, who is at them, and what is remembered of them: in the ledger, for whichever process comes next. */
import type { HealthReport } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { OpenFailure } from '../checks/measured.ts';
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

/** Of a process that is killed, the others take over what it was at after this. */
export const CLAIM_MS = 12_000;

export type InspectionQueue = ReturnType<typeof createInspectionQueue>;

export type InspectionQueueOptions = {
  store: EvidenceStore;
  clock: Clock;
  /** Of this process alone. */
  holder: string;
  /** Milliseconds between two inspections of a verified executor. */
  intervalMs: number;
  /** Milliseconds after which others are looked at again at the earliest, however short their own pause is. */
  pauseMs: number;
};

/** What is remembered of an executor. */
export type Memory = {
  transportFailures: number;
  /** Of reasons that count only when they are seen again. */
  streaks: Record<string, number>;
  /** Failures that no run since has shown to be over, by check. */
  found: Record<string, OpenFailure>;
};

/** And what the last look was followed by. */
export type InspectionState = Memory & { pauseMs: number | null };

export type InspectionEnd = InspectionState & {
  executorId: string;
  verdict: HealthReport['verdict'];
  checkedMs: number;
  /** When the facts were read that the verdict is on, by this clock. */
  factsMs: number;
};

/** The clocks of two processes may be apart by so much; facts of a later time are of a clock that was set back since. */
const CLOCKS_APART_MS = 60_000;

/** A verdict on newer facts is on record: this one came too late, and nothing of it is kept. */
export class StaleVerdict extends Error {}

export function createInspectionQueue(options: InspectionQueueOptions) {
  const { store, clock, holder } = options;

  function dueNow(): Due {
    const nowMs = clock.now();
    return {
      nowMs,
      verifiedMs: nowMs - options.intervalMs,
      otherMs: nowMs - options.pauseMs,
      // A file has one process at a time: what another one held, it left behind.
      freeMs: isShared(store) ? nowMs : Number.MAX_SAFE_INTEGER,
    };
  }

  return {
    /** Executors that are listed from now on. */
    follow: (executorIds: ReadonlySet<string>) =>
      syncInspections(store, executorIds, dueNow().freeMs),

    /** Those that others are known of now: who did not pass with the old is looked at again at once. */
    changed: (executorIds: readonly string[]) => resetPauses(store, executorIds),

    /** Those that are due, and that nobody is at. */
    due: (): Promise<string[]> => dueInspections(store, dueNow()),

    /** Takes those that are due still; they are this process's while it keeps calling `hold`. */
    claim: (executorIds: readonly string[]): Promise<string[]> =>
      claimInspections(store, executorIds, {
        ...{ due: dueNow(), holder },
        untilMs: clock.now() + CLAIM_MS,
      }),

    /** Executors that were reached when they were last looked at. */
    answering: (): Promise<Set<string>> => reachableExecutors(store),

    hold: () => extendClaims(store, holder, clock.now() + CLAIM_MS),

    release: (executorId: string) => releaseInspection(store, executorId, holder),

    async recall(executorId: string): Promise<InspectionState> {
      const row = await findInspection(store, executorId);
      if (row === undefined) return { transportFailures: 0, pauseMs: null, streaks: {}, found: {} };
      // Written by us.
      const streaks = JSON.parse(row.streaks_json) as Record<string, number>;
      const found = JSON.parse(row.found_json) as Record<string, OpenFailure>;
      const { transport_failures: transportFailures, pause_ms: pauseMs } = row;
      return { transportFailures, pauseMs, streaks, found };
    },

    /**
     * In the transaction that records the result. Throws VerdictTooLate, and an error when the executor was claimed and
     * another process has taken it over meanwhile: that one's result counts.
     */
    async end(tx: StoreDb, ended: InspectionEnd, isClaimed: boolean): Promise<void> {
      const { executorId: id, verdict } = ended;
      const looked = { verdict, isRegular: isClaimed, before: ended.pauseMs };
      const latestMs = clock.now() + CLOCKS_APART_MS;
      const result = {
        executor_id: id,
        checked_ms: ended.checkedMs,
        verdict,
        facts_ms: ended.factsMs,
        pause_ms: pauseAfter({ ...looked, intervalMs: options.intervalMs }),
        transport_failures: ended.transportFailures,
        streaks_json: JSON.stringify(ended.streaks),
        found_json: JSON.stringify(ended.found),
      };
      const isKept = isClaimed
        ? await endInspection(tx, result, { holder, latestMs })
        : await recordUnclaimedInspection(tx, result, latestMs);
      if (isKept) return;
      if (!isClaimed || (await findInspection(tx, id))?.holder === holder) {
        throw new StaleVerdict('a verdict on newer facts is on record');
      }
      throw new Error('another process has taken this executor over');
    },
  };
}

// MERGED validator/inspection/inspection-queue.ts: How soon an executor that did not pass is looked at again: with the next passes at first, then ever later.
const FIRST_PAUSE_MS = 1_000;
/**
 * What leaves an executor that never passes within the 3,000 documents that are kept of it: 2,016 in the 14 days that
 * evidence is kept for.
 */
const LONGEST_PAUSE_MS = 600_000;

export type Looked = {
  verdict: HealthReport['verdict'];
  /** Whether it was due. Somebody who asks makes the pause no longer. */
  isRegular: boolean;
  /** What the look before was followed by; null where that passed or there was none, and where something has changed since. */
  before: number | null;
  /** Between two looks at one that passes: no pause is longer. */
  intervalMs: number;
};

/** Milliseconds from a look to the next; null after one that passed, which the regular interval follows. */
export function pauseAfter({ verdict, isRegular, before, intervalMs }: Looked): number | null {
  if (verdict === 'verified') return null;
  if (!isRegular) return before;
  if (before === null) return 0;
  return Math.min(Math.max(before * 2, FIRST_PAUSE_MS), LONGEST_PAUSE_MS, intervalMs);
}
