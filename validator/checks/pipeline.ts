/** All checks in their order, and the verdict over their outcomes. Pure. */
import type { CheckResult, HealthReport } from '#shared/central-api/validator-routes.ts';
import { type Check, type Facts, toCheckResult } from './check.ts';
import { clockCheck } from './clock.check.ts';
import { containerStartCheck } from './container-start.check.ts';
import { executorIdentityCheck } from './executor-identity.check.ts';
import { gpuInventoryCheck } from './gpu-inventory.check.ts';
import { reachabilityCheck } from './reachability.check.ts';

export const CHECKS: readonly Check[] = [
  reachabilityCheck,
  executorIdentityCheck,
  clockCheck,
  gpuInventoryCheck,
  containerStartCheck,
];

/** An agent that cannot be reached costs nothing until it was unreachable this often in a row. */
export const TRANSPORT_FAILURES_ALLOWED = 2;

/** `transportFailures` counts the unreachable inspections just before this one. */
export function judge(facts: Facts, transportFailures: number): HealthReport {
  const checks: CheckResult[] = CHECKS.map((check) => toCheckResult(check, check.judge(facts)));
  return {
    verdict: verdictOf(checks, facts, transportFailures),
    checked_at_ms: facts.receivedMs,
    checks,
    inventory: facts.inventory,
  };
}

function verdictOf(
  checks: readonly CheckResult[],
  facts: Facts,
  transportFailures: number,
): HealthReport['verdict'] {
  // Whoever was never enrolled has nothing to lose by a verdict, and its provider waits for the reason.
  if (facts.refusal === 'NOT_ENROLLED') return 'failed';
  if (facts.inventory === null) {
    return transportFailures < TRANSPORT_FAILURES_ALLOWED ? 'withheld' : 'failed';
  }
  return checks.every((check) => check.passed) ? 'verified' : 'failed';
}
