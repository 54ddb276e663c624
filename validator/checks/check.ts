/** A check as data: a pure verdict over facts, with a reason code and what to do (validator reference 5). */
import type { Inventory, VerifyResult } from '#shared/api/agent/inventory.ts';
import type {
  CheckCategory,
  CheckMode,
  CheckSeverity,
  ExecutorToCheck,
} from '#shared/api/central/validator-routes.ts';
import { PEER_REFUSALS } from '#shared/tls/peer.ts';
import type { CheckPolicy } from './check-policy.ts';
import type { Measured } from './measured.ts';

/** Why whoever answered gave us no inventory. Closed and stable: evidence holds them, and clients key on them. */
export const REFUSALS = [
  ...PEER_REFUSALS,
  /** It answered something that no agent answers. */
  'AGENT_ANSWER_INVALID',
  /** It is an agent, and will not answer us. */
  'AGENT_REFUSED',
] as const;
export type Refusal = (typeof REFUSALS)[number];

/** Everything that was learnt of one executor in one inspection. */
export type Facts = {
  executor: ExecutorToCheck;
  /** Null when the agent did not answer; `transportError` says why. */
  inventory: Inventory | null;
  transportError: string | null;
  /** Null when whoever answered was believed, or nobody answered. */
  refusal: Refusal | null;
  /** Null when the agent did not answer, or was not believed. */
  identity: AgentIdentity | null;
  /** Validator's wall clock when the inventory arrived, milliseconds. */
  receivedMs: number;
  /** Null when it was not run: rented hosts are never disturbed. */
  probe: VerifyResult | null;
  measured: Measured;
  policy: Policy;
};

/** The key that the agent signs with, hex, and until when its provider's word for it counts. */
export type AgentIdentity = { publicKey: string; enrolledUntilMs: number };

export type Policy = {
  /** Simulated GPUs pass only where nothing is at stake: on one's own machine. */
  acceptSimulated: boolean;
  checks: CheckPolicy;
};

export type Failure = {
  status: 'failed';
  reasonCode: string;
  measured: string;
  message: string;
  /** How often in a row it has to be seen before it counts; once unless given. */
  inARow?: number;
  /** Until then there is no verdict: what is seen is not what may be rented. It holds otherwise. */
  isWithholding?: boolean;
  /** Where the table’s remedy for the reason does not fit. */
  remedy?: string;
  /** It is of the same measurement as the time before: seen again, it is seen once. */
  isRepeated?: boolean;
};

export type Outcome =
  /** `warning`: it holds, and will hurt. */
  | { status: 'passed'; measured: string; warning?: string }
  | Failure
  /** The facts that it needs are missing: no verdict either way, and no cost. */
  | {
      status: 'unknown';
      measured: string;
      /** The question does not arise any more: a failure from before ends with it. */
      isMoot?: boolean;
    };

/** The rule of one check over facts that have an inventory. Pure. */
export type Judge = (facts: Facts & { inventory: Inventory }) => Outcome;

/** One row of the table of checks. */
export type Check = {
  id: string;
  /** What goes wrong on a host that fails it. */
  detects: string;
  /** What has to hold, in words. */
  required: string;
  category: CheckCategory;
  /** Of a failure that counts. */
  severity: CheckSeverity;
  /** After its failure nothing else is worth judging. */
  fatal: boolean;
  /** Unless the policy says otherwise. `shadow`: on record without effect; `observe`: not even meant to have one. */
  mode: CheckMode;
  /** Whether it is judged while a renter is on the host. */
  whileRented: boolean;
  /** Whether the host has to be tried for it: its failure stands until it was tried again and passed. */
  isTrial: boolean;
  /** What to do about each reason that it can give. */
  remedies: Readonly<Record<string, string>>;
  judge: Judge;
  /** The same of an executor without an inventory; not judged unless given. */
  judgeAbsent?: (facts: Facts) => Outcome;
};

export const passed = (measured: string): Outcome => ({ status: 'passed', measured });
export const unknown = (measured: string): Outcome => ({ status: 'unknown', measured });
/** Unknown because nobody asks for it. */
export const moot = (measured: string): Outcome => ({ status: 'unknown', measured, isMoot: true });

/** A failure: what was found, in figures and in words. */
export function failed(reasonCode: string, measured: string, message: string): Failure {
  return { status: 'failed', reasonCode, measured, message };
}
