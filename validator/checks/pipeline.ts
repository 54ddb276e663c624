/** All checks of the table over the facts, and the verdict. Pure. */
import {
  type CheckResult,
  type HealthReport,
  isBlocking,
} from '#shared/api/central/validator-routes.ts';
import { type Check, type Facts, type Outcome, unknown } from './check.ts';
import { modeOf } from './check-policy.ts';
import { CHECKS } from './check-table.ts';
import { type FoundFailure, foundBy, MAX_MEASURED_CHARS, standingOf } from './found-failure.ts';
import { lineSpeeds } from './line.check.ts';

/** An agent that cannot be reached costs nothing until it was unreachable this often in a row. */
export const TRANSPORT_FAILURES_ALLOWED = 2;
const REMEDY = 'See the log of the agent.';

export type Judgement = {
  report: HealthReport;
  /** How often in a row each reason that counts only when it is seen again has been seen now. */
  streaks: Record<string, number>;
  /** By check: what stands against the host until it is shown to be over. */
  found: Record<string, FoundFailure>;
};

/** `transportFailures` counts the unreachable inspections just before this one. */
export function judge(facts: Facts, transportFailures: number): HealthReport {
  return judgeAll(facts, transportFailures).report;
}

/** The same with what is to be remembered for the next time. */
export function judgeAll(facts: Facts, transportFailures: number): Judgement {
  const checks: CheckResult[] = [];
  const streaks: Record<string, number> = {};
  const found: Record<string, FoundFailure> = {};
  /** Failures that count for no verdict yet, and against one that passes. */
  const withholding = new Set<string>();
  let endedBy: string | null = null;
  for (const check of CHECKS) {
    const outcome = endedBy === null ? outcomeOf(check, facts) : unknown(`not after ${endedBy}`);
    const seen = seenOf(outcome, facts.measured.streaks[check.id] ?? 0);
    if (seen > 0) streaks[check.id] = seen;
    const counts = isCounting(outcome, seen);
    const isJudged = endedBy === null && isJudgedNow(check, facts);
    const now = { outcome, isCounting: counts, isJudged, nowMs: facts.receivedMs };
    const standing = foundBy(check, now, facts.measured.found[check.id] ?? null);
    if (standing !== null) found[check.id] = standing;
    const isFoundNow = outcome.status === 'failed' && counts;
    const isShown = standing !== null && !isFoundNow && endedBy === null;
    const shown = isShown ? standingOf(standing) : outcome;
    const result = toCheckResult(check, shown, { seen, facts });
    checks.push(result);
    if (!isCounting(shown, seen)) withholding.add(check.id);
    if (check.fatal && isBlocking(result)) endedBy = check.id;
  }
  const { inventory, receivedMs } = facts;
  const verdict = verdictOf(checks, facts, { transportFailures, withholding });
  // Nothing was seen of one that did not answer: what was seen before stays.
  const kept = inventory === null ? facts.measured.streaks : streaks;
  const line = lineSpeeds(facts.measured.line);
  const report = { verdict, checked_at_ms: receivedMs, checks, inventory, line };
  return { report, streaks: kept, found };
}

/** What was not measured neither ends a row nor makes it longer. */
function seenOf(outcome: Outcome, before: number): number {
  if (outcome.status === 'unknown') return before;
  if (outcome.status === 'passed') return 0;
  return outcome.isRepeated === true ? Math.max(before, 1) : before + 1;
}

/** Whether it was seen often enough, if it is a failure. */
function isCounting(outcome: Outcome, seen: number): boolean {
  return outcome.status !== 'failed' || seen >= (outcome.inARow ?? 1);
}

function outcomeOf(check: Check, facts: Facts): Outcome {
  const { inventory } = facts;
  if (inventory === null) {
    return check.judgeAbsent?.(facts) ?? unknown('no inventory');
  }
  if (!isJudgedNow(check, facts)) return unknown('rented');
  return check.judge({ ...facts, inventory });
}

/** Whoever rents a host is not disturbed. */
const isJudgedNow = ({ whileRented }: Check, { executor, inventory }: Facts): boolean =>
  inventory !== null && (whileRented || !executor.rented);

/** The wire form of an outcome; an unknown one counts as passed and says so. */
function toCheckResult(
  check: Check,
  outcome: Outcome,
  { seen, facts }: { seen: number; facts: Facts },
): CheckResult {
  const reason = outcome.status === 'failed' ? outcome.reasonCode : null;
  const mode = modeOf(check, facts.policy.checks, { atMs: facts.receivedMs, reason });
  const shared = {
    check_id: check.id,
    measured: outcome.measured.slice(0, MAX_MEASURED_CHARS),
    required: check.required,
    ...{ mode, category: check.category, fatal: check.fatal },
  };
  const harmless = { ...shared, passed: true, reason_code: null, remediation: '' };
  if (outcome.status === 'unknown') return { ...harmless, severity: 'info', message: 'unknown' };
  if (outcome.status === 'passed') {
    const { warning } = outcome;
    return { ...harmless, severity: warning ? 'warning' : 'info', message: warning ?? 'passed' };
  }
  const times = isCounting(outcome, seen) ? '' : `seen ${seen} of ${outcome.inARow} times in a row`;
  if (times !== '' && outcome.isWithholding !== true) {
    const message = `${outcome.message} (${outcome.reasonCode}, ${times})`;
    return { ...harmless, severity: 'warning', message };
  }
  const effect = mode === 'enforce' ? times : 'on record only: it changes no verdict yet';
  const note = effect === '' ? '' : ` (${effect})`;
  return {
    ...shared,
    passed: false,
    severity: mode === 'enforce' ? check.severity : 'warning',
    reason_code: outcome.reasonCode,
    message: `${outcome.message}${note}`,
    remediation: outcome.remedy ?? check.remedies[outcome.reasonCode] ?? REMEDY,
  };
}

function verdictOf(
  checks: readonly CheckResult[],
  facts: Facts,
  {
    transportFailures,
    withholding,
  }: { transportFailures: number; withholding: ReadonlySet<string> },
): HealthReport['verdict'] {
  // Whoever was never enrolled has nothing to lose by a verdict, and its provider waits for the reason.
  if (facts.refusal === 'NOT_ENROLLED') return 'failed';
  if (facts.inventory === null) {
    return transportFailures < TRANSPORT_FAILURES_ALLOWED ? 'withheld' : 'failed';
  }
  const blocking = checks.filter(isBlocking);
  if (blocking.length === 0) return 'verified';
  return blocking.every(({ check_id: id }) => withholding.has(id)) ? 'withheld' : 'failed';
}
