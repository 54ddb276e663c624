/** Runs all checks over the facts of an inspection and derives the verdict. Pure. */
import {
  type CheckResult,
  type HealthReport,
  isBlocking,
} from '#shared/api/central/validator-routes.ts';
import { unknown } from '#shared/check/check.ts';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { lineSpeeds } from './bandwidth.check.ts';
import type { Check, CheckOutcome, Facts, Failure } from './check.ts';
import { modeOf, withValues } from './check-policy.ts';
import { CHECKS } from './checks.ts';
import { MAX_MEASURED_CHARS, type OpenFailure } from './measured.ts';

/** Number of consecutive unreachable inspections that only withhold the verdict; the next one fails the executor. */
export const TRANSPORT_FAILURES_ALLOWED = 2;
const REMEDY = 'See the log of the agent.';

export type Judgement = {
  report: HealthReport;
  /** Number of consecutive failures, by check. */
  streaks: Record<string, number>;
  /** Time of the last failure that a streak counts, by check. */
  streakTimes: Record<string, number>;
  /** Failures that stay open until a run shows that the fault has ended, by check. */
  found: Record<string, OpenFailure>;
};

/** `transportFailures`: number of unreachable inspections just before this one. */
export function judge(facts: Facts, transportFailures: number): HealthReport {
  return judgeAll(facts, transportFailures).report;
}

/** Like `judge`, and returns what the next run needs. */
export function judgeAll(facts: Facts, transportFailures: number): Judgement {
  const checks: CheckResult[] = [];
  const streaks: Record<string, number> = {};
  const streakTimes: Record<string, number> = {};
  const found: Record<string, OpenFailure> = {};
  /** Failures that do not count yet but prevent a passing verdict. */
  const withholding = new Set<string>();
  let endedBy: string | null = null;
  for (const check of CHECKS) {
    const outcome =
      endedBy === null
        ? confirmedFirst(outcomeOf(check, facts), facts)
        : unknown(`not after ${endedBy}`);
    const before = streakBefore(check, facts);
    const { streak, atMs } = streakAfter(outcome, before, facts);
    if (streak > 0) [streaks[check.id], streakTimes[check.id]] = [streak, atMs];
    const counts = isCounting(outcome, streak);
    const isJudged = endedBy === null && isJudgedNow(check, facts);
    const now = { outcome, isCounting: counts, isJudged, nowMs: facts.receivedMs };
    const open = openFailureAfter(check, now, facts.measured.found[check.id] ?? null);
    if (open !== null) found[check.id] = open;
    const failsNow = outcome.status === 'fail' && counts;
    const reportsOpen = open !== null && !failsNow && endedBy === null;
    const reported = reportsOpen ? outcomeOfOpen(open) : outcome;
    const result = toCheckResult(check, reported, { streak, facts });
    checks.push(result);
    if (!isCounting(reported, streak)) withholding.add(check.id);
    if (check.fatal && isBlocking(result)) endedBy = check.id;
  }
  const { inventory, receivedMs } = facts;
  const verdict = verdictOf(checks, facts, { transportFailures, withholding });
  const line = lineSpeeds(facts.measured.line);
  return {
    report: { verdict, checked_at_ms: receivedMs, checks, inventory, line },
    // A run without an answer of the agent judged no other check, so the streaks stay.
    streaks: inventory === null ? facts.measured.streaks : streaks,
    streakTimes: inventory === null ? facts.measured.streak_times : streakTimes,
    found,
  };
}

/**
 * Makes a failure of a host that has passed with its current listing count only when it is seen again: a driver may omit
 * cards while it loads, and an engine may restart. Until then the verdict is withheld.
 */
function confirmedFirst(outcome: CheckOutcome, { measured }: Facts): CheckOutcome {
  if (outcome.status !== 'fail' || measured.accepted === null) return outcome;
  if (outcome.isCertain === true || (outcome.inARow ?? 1) > 1) return outcome;
  return { ...outcome, inARow: 2, isWithholding: true };
}

type Streak = { streak: number; atMs: number };

const streakBefore = ({ id }: Check, { measured, receivedMs }: Facts): Streak => ({
  streak: measured.streaks[id] ?? 0,
  atMs: measured.streak_times[id] ?? receivedMs - measured.interval_ms,
});

/**
 * Returns the streak after this run. It does not change with unknown outcomes, repeated measurements, and failures that
 * are less than an interval apart. After the clock was set back, the next failure counts.
 */
function streakAfter(
  outcome: CheckOutcome,
  before: Streak,
  { measured, receivedMs: nowMs }: Facts,
): Streak {
  if (outcome.status === 'unknown') return before;
  if (outcome.status !== 'fail') return { streak: 0, atMs: nowMs };
  if (before.streak === 0) return { streak: 1, atMs: nowMs };
  const isApart = nowMs < before.atMs || nowMs - before.atMs >= measured.interval_ms;
  const isCounted = isApart && outcome.isRepeated !== true;
  return isCounted ? { streak: before.streak + 1, atMs: nowMs } : before;
}

/** Returns false for a failure that needs a longer streak. */
function isCounting(outcome: CheckOutcome, streak: number): boolean {
  return outcome.status !== 'fail' || streak >= (outcome.inARow ?? 1);
}

function outcomeOf(check: Check, facts: Facts): CheckOutcome {
  const { inventory } = facts;
  if (inventory === null) {
    return check.judgeAbsent?.(facts) ?? unknown('no inventory');
  }
  if (!isJudgedNow(check, facts)) return unknown('rented');
  return check.judge({ ...facts, inventory });
}

const isJudgedNow = ({ whileRented }: Check, { executor, inventory }: Facts): boolean =>
  inventory !== null && (whileRented || !executor.rented);

export type JudgedOutcome = {
  outcome: CheckOutcome;
  /** True if the streak is long enough for the failure to count. */
  isCounting: boolean;
  /** False if the check is skipped on a rented host, or after a fatal failure. */
  isJudged: boolean;
  nowMs: number;
};

/**
 * Returns the failure that stays open after a run: the failure that counts now, or the earlier failure if this run did
 * not show that the fault has ended. A run without trials closes no failure that a trial found.
 */
export function openFailureAfter(
  check: Check,
  { outcome, isCounting: counts, isJudged, nowMs }: JudgedOutcome,
  before: OpenFailure | null,
): OpenFailure | null {
  if (check.whileRented || outcome.status === 'ok' || outcome.status === 'warn') return null;
  if (outcome.status === 'unknown') {
    const wasLeftOut = !isJudged || (check.isTrial && outcome.isMoot !== true);
    return wasLeftOut ? before : null;
  }
  if (!counts) return before;
  const { reasonCode, message, remedy = null } = outcome;
  return {
    reason_code: reasonCode,
    measured: outcome.measured.slice(0, MAX_MEASURED_CHARS),
    message,
    remedy,
    since_ms: before?.reason_code === reasonCode ? before.since_ms : nowMs,
  };
}

/** The outcome of an open failure in a run that did not find the failure itself. */
function outcomeOfOpen({ since_ms, ...found }: OpenFailure): Failure {
  const since = `open since ${naiveUtc(since_ms)}Z, until a trial passes`;
  return {
    status: 'fail',
    reasonCode: found.reason_code,
    measured: found.measured,
    message: `${found.message} (${since})`,
    ...(found.remedy === null ? {} : { remedy: found.remedy }),
  };
}

type Finding = 'passed' | 'severity' | 'reason_code' | 'message' | 'remediation';

/** The wire form of an outcome. Unknown outcomes pass, with the message `unknown`. */
function toCheckResult(
  check: Check,
  outcome: CheckOutcome,
  { streak, facts }: { streak: number; facts: Facts },
): CheckResult {
  const reason = outcome.status === 'fail' ? outcome.reasonCode : null;
  const modeInForce = modeOf(check, facts.policy.checks, { atMs: facts.receivedMs, reason });
  const isOfWeight = check.effect === 'weight' && modeInForce === 'enforce';
  // A failure in mode `enforce` would fail the executor.
  const mode = isOfWeight ? 'observe' : modeInForce;
  // In the order of canonical JSON, so that evidence is written without sorting.
  const result = (finding: Pick<CheckResult, Finding>): CheckResult => ({
    category: check.category,
    check_id: check.id,
    fatal: check.fatal,
    measured: outcome.measured.slice(0, MAX_MEASURED_CHARS),
    message: finding.message,
    mode,
    passed: finding.passed,
    reason_code: finding.reason_code,
    remediation: finding.remediation,
    required: withValues(check.required, facts.policy.checks),
    severity: finding.severity,
  });
  const passing = (severity: CheckResult['severity'], message: string) =>
    result({ passed: true, reason_code: null, remediation: '', severity, message });
  if (outcome.status === 'unknown') return passing('info', 'unknown');
  if (outcome.status === 'ok') return passing('info', 'passed');
  if (outcome.status === 'warn') return passing('warning', outcome.message);
  const progress = isCounting(outcome, streak)
    ? ''
    : `seen ${streak} of ${outcome.inARow} times in a row`;
  if (progress !== '' && outcome.isWithholding !== true) {
    const message = `${outcome.message} (${outcome.reasonCode}, ${progress})`;
    return passing('warning', message);
  }
  const recorded = isOfWeight
    ? 'it changes the weight, not the verdict'
    : 'recorded only: it changes no verdict yet';
  const effect = mode === 'enforce' ? progress : recorded;
  const note = effect === '' ? '' : ` (${effect})`;
  return result({
    passed: false,
    severity: mode === 'enforce' ? check.severity : 'warning',
    reason_code: outcome.reasonCode,
    message: `${outcome.message}${note}`,
    remediation: outcome.remedy ?? check.remedies[outcome.reasonCode] ?? REMEDY,
  });
}

function verdictOf(
  checks: readonly CheckResult[],
  facts: Facts,
  {
    transportFailures,
    withholding,
  }: { transportFailures: number; withholding: ReadonlySet<string> },
): HealthReport['verdict'] {
  // An executor whose agent was never enrolled has no earlier verdict to protect, and its provider needs the reason at
  // once.
  if (facts.refusal === 'NOT_ENROLLED') return 'failed';
  if (facts.inventory === null) {
    return transportFailures < TRANSPORT_FAILURES_ALLOWED ? 'withheld' : 'failed';
  }
  const blocking = checks.filter(isBlocking);
  if (blocking.length === 0) return 'verified';
  return blocking.every(({ check_id: id }) => withholding.has(id)) ? 'withheld' : 'failed';
}
