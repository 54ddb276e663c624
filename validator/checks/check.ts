/** A check as data: a pure verdict over facts, with a reason code and what to do (validator reference 5). */
import type { Inventory, VerifyResult } from '#shared/agent-api/inventory.ts';
import type { CheckResult, ExecutorToCheck } from '#shared/central-api/validator-routes.ts';
import type { PeerRefusal } from '#shared/tls/peer-refused.ts';

/** Everything that was learnt of one executor in one inspection. */
export type Facts = {
  executor: ExecutorToCheck;
  /** Null when the agent did not answer; `transportError` says why. */
  inventory: Inventory | null;
  transportError: string | null;
  /** Why whoever answered was not believed; null when it was, or nobody answered. */
  refusal: PeerRefusal | null;
  /** Null when the agent did not answer, or was not believed. */
  identity: AgentIdentity | null;
  /** Validator's wall clock when the inventory arrived, milliseconds. */
  receivedMs: number;
  /** Null when it was not run: rented hosts are never disturbed. */
  probe: VerifyResult | null;
  policy: Policy;
};

/** The key that the agent signs with, hex, and until when its provider's word for it counts. */
export type AgentIdentity = { publicKey: string; enrolledUntilMs: number };

export type Policy = {
  /** Simulated GPUs pass only where nothing is at stake: on one's own machine. */
  acceptSimulated: boolean;
};

export type Outcome =
  | { status: 'passed'; measured: string }
  | { status: 'failed'; reasonCode: string; measured: string; message: string; remediation: string }
  /** The facts that it needs are missing: no verdict either way. */
  | { status: 'unknown'; measured: string };

export type Check = {
  id: string;
  /** What has to hold, in words. */
  required: string;
  judge(facts: Facts): Outcome;
};

/** A failed outcome. */
export function refusedBecause(
  reasonCode: string,
  measured: string,
  message: string,
  remediation: string,
): Outcome {
  return { status: 'failed', reasonCode, measured, message, remediation };
}

/** The wire form of an outcome; an unknown one counts as passed and says so. */
export function toCheckResult(check: Check, outcome: Outcome): CheckResult {
  const failed = outcome.status === 'failed';
  return {
    check_id: check.id,
    passed: !failed,
    reason_code: failed ? outcome.reasonCode : null,
    measured: outcome.measured,
    required: check.required,
    message: failed ? outcome.message : outcome.status,
    remediation: failed ? outcome.remediation : '',
  };
}
