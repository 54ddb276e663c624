/** Defines a check of the validator: the shared shape, with a reason code for each failure and a mode. */
import type { Inventory, VerifyResult } from '#shared/api/agent/inventory.ts';
import type {
  CheckCategory,
  CheckMode,
  CheckSeverity,
  ExecutorToCheck,
} from '#shared/api/central/validator-routes.ts';
import type { CheckDefinition, Outcome } from '#shared/check/check.ts';
import { PEER_REFUSALS } from '#shared/tls/peer.ts';
import type { CheckPolicy } from './check-policy.ts';
import type { Measured } from './measured.ts';

/**
 * Reasons why an answer contained no inventory. Closed and stable: evidence stores the codes, and clients compare them.
 */
export const REFUSALS = [
  ...PEER_REFUSALS,
  /** The response is not one that an agent sends. */
  'AGENT_ANSWER_INVALID',
  /** The agent rejects this validator's requests. */
  'AGENT_REFUSED',
] as const;
export type Refusal = (typeof REFUSALS)[number];

/** All facts about one executor from one inspection. */
export type Facts = {
  executor: ExecutorToCheck;
  /** Null if the agent did not answer; `transportError` has the reason. */
  inventory: Inventory | null;
  transportError: string | null;
  /** Null if the answer was accepted or the agent did not answer. */
  refusal: Refusal | null;
  /** Null if the agent did not answer or its answer was rejected. */
  identity: AgentIdentity | null;
  /** Validator's wall clock when the inventory arrived, milliseconds. */
  receivedMs: number;
  /** Null if the probe was not run, as on rented hosts. */
  probe: VerifyResult | null;
  measured: Measured;
  policy: Policy;
};

/** The agent's public key in hex, and the time at which its provider's signature expires. */
export type AgentIdentity = { publicKey: string; enrolledUntilMs: number };

export type Policy = {
  /** Accept simulated GPUs. Only for a marketplace on one machine, where no money is involved. */
  acceptSimulated: boolean;
  checks: CheckPolicy;
};

export type Failure = Outcome<'fail'> & {
  reasonCode: string;
  message: string;
  /** Number of consecutive runs that must fail before the failure counts; 1 by default. */
  inARow?: number;
  /** Until the failure counts, the verdict is withheld. By default the check passes until then. */
  isWithholding?: boolean;
  /** True if the previous run already counted this measurement: the streak does not change. */
  isRepeated?: boolean;
  /** True if no accident causes the fault: it counts at once, also on a host that has passed before. */
  isCertain?: boolean;
};

export type CheckOutcome =
  | Outcome<'ok'>
  | (Outcome<'warn'> & { message: string })
  | Failure
  /**
   * Facts are missing, which does not affect the verdict. `isMoot`: nothing is required any more, which closes an
   * earlier failure.
   */
  | (Outcome<'unknown'> & { isMoot?: boolean });

/** Judges the facts of a run that has an inventory. Pure. */
export type Judge = (facts: Facts & { inventory: Inventory }) => CheckOutcome;

export type Check = CheckDefinition & {
  category: CheckCategory;
  /** Severity of a failure in mode `enforce`. */
  severity: CheckSeverity;
  /** A failure ends the run: later checks are not judged. */
  fatal: boolean;
  /** Effect of a failure in mode `enforce`: it fails the executor, or only its cards have no weight. */
  effect: 'verdict' | 'weight';
  /** Default mode; a policy may set another. `shadow` and `observe` record failures without effect on the verdict. */
  mode: CheckMode;
  /** True if the check also runs while the host is rented. */
  whileRented: boolean;
  /** True if the check judges a trial on the host. Its failure stays open until a later trial passes. */
  isTrial: boolean;
  /** The standard remedy for each reason code. */
  remedies: Readonly<Record<string, string>>;
  judge: Judge;
  /** Judges the facts of a run without an inventory. Without this function the outcome of such a run is `unknown`. */
  judgeAbsent?: (facts: Facts) => CheckOutcome;
};

/** Defines a check. By default, the check affects the verdict and runs only while the host is not rented. */
export function defineCheck(
  check: CheckDefinition & Pick<Check, 'category' | 'judge' | 'remedies'> & Partial<Check>,
): Check {
  return {
    severity: 'error',
    fatal: false,
    mode: 'enforce',
    effect: 'verdict',
    whileRented: false,
    isTrial: false,
    ...check,
  };
}

/** Outcome: the requirement holds, but it may fail later. */
export function warn(measured: string, message: string): CheckOutcome {
  return { status: 'warn', measured, message };
}

/** Outcome: nothing is required. Unlike `unknown`, this ends an earlier failure. */
export function moot(measured: string): CheckOutcome {
  return { status: 'unknown', measured, isMoot: true };
}

/** `reasonCode`: a key of the check's remedies. */
export function fail(reasonCode: string, measured: string, message: string): Failure {
  return { status: 'fail', reasonCode, measured, message };
}

export const READ_LOG_AND_RESTART = 'Read the log of the agent, then restart it.';
