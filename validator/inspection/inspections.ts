/** Which executors are due, who is at them, and what is remembered of them: in the ledger, for whichever process comes next. */
import type { HealthReport } from '#shared/api/central/validator-routes.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { FoundFailure } from '../checks/found-failure.ts';
import type { Ledger, LedgerDb } from '../store/ledger.tables.ts';
import { isShared } from '../store/ledger.ts';
import {
  answeringExecutors,
  claimInspections,
  type Due,
  dueInspections,
  endInspection,
  endPauses,
  findInspection,
  followInspections,
  holdInspections,
  noteInspection,
  releaseInspection,
} from './inspection.store.ts';
import { pauseAfter } from './look-pause.state.ts';

/** Of a process that is killed, the others take over what it was at after this. */
export const HOLD_MS = 12_000;

export type Inspections = ReturnType<typeof createInspections>;

export type InspectionsOptions = {
  ledger: Ledger;
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
  found: Record<string, FoundFailure>;
};

/** And what the last look was followed by. */
export type Recalled = Memory & { pauseMs: number | null };

export type InspectionEnd = Recalled & {
  executorId: string;
  verdict: HealthReport['verdict'];
  checkedMs: number;
  /** When the facts were read that the verdict is on, by this clock. */
  factsMs: number;
};

/** The clocks of two processes may be apart by so much; facts of a later time are of a clock that was set back since. */
const CLOCKS_APART_MS = 60_000;

/** A verdict on newer facts is on record: this one came too late, and nothing of it is kept. */
export class VerdictTooLate extends Error {}

export function createInspections(options: InspectionsOptions) {
  const { ledger, clock, holder } = options;

  function dueNow(): Due {
    const nowMs = clock.now();
    return {
      nowMs,
      verifiedMs: nowMs - options.intervalMs,
      otherMs: nowMs - options.pauseMs,
      // A file has one process at a time: what another one held, it left behind.
      freeMs: isShared(ledger) ? nowMs : Number.MAX_SAFE_INTEGER,
    };
  }

  return {
    /** Executors that are listed from now on. */
    follow: (executorIds: ReadonlySet<string>) =>
      followInspections(ledger, executorIds, dueNow().freeMs),

    /** Those that others are known of now: who did not pass with the old is looked at again at once. */
    changed: (executorIds: readonly string[]) => endPauses(ledger, executorIds),

    /** Those that are due, and that nobody is at. */
    due: (): Promise<string[]> => dueInspections(ledger, dueNow()),

    /** Takes those that are due still; they are this process's while it keeps calling `hold`. */
    claim: (executorIds: readonly string[]): Promise<string[]> =>
      claimInspections(ledger, executorIds, {
        ...{ due: dueNow(), holder },
        untilMs: clock.now() + HOLD_MS,
      }),

    /** Executors that were reached when they were last looked at. */
    answering: (): Promise<Set<string>> => answeringExecutors(ledger),

    hold: () => holdInspections(ledger, holder, clock.now() + HOLD_MS),

    release: (executorId: string) => releaseInspection(ledger, executorId, holder),

    async recall(executorId: string): Promise<Recalled> {
      const row = await findInspection(ledger, executorId);
      if (row === undefined) return { transportFailures: 0, pauseMs: null, streaks: {}, found: {} };
      // Written by us.
      const streaks = JSON.parse(row.streaks_json) as Record<string, number>;
      const found = JSON.parse(row.found_json) as Record<string, FoundFailure>;
      const { transport_failures: transportFailures, pause_ms: pauseMs } = row;
      return { transportFailures, pauseMs, streaks, found };
    },

    /**
     * In the transaction that records the result. Throws VerdictTooLate, and an error when the executor was claimed and
     * another process has taken it over meanwhile: that one's result counts.
     */
    async end(tx: LedgerDb, ended: InspectionEnd, isClaimed: boolean): Promise<void> {
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
        : await noteInspection(tx, result, latestMs);
      if (isKept) return;
      if (!isClaimed || (await findInspection(tx, id))?.holder === holder) {
        throw new VerdictTooLate('a verdict on newer facts is on record');
      }
      throw new Error('another process has taken this executor over');
    },
  };
}
