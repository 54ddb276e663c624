/**
 * The states of an update, their transitions, the row that stores them, and the public status. README.md has a
 * diagram. Pure.
 */
import { z } from 'zod';
import {
  UPDATE_STATES,
  type UpdateState,
  type UpdateStatus,
} from '#shared/api/agent/update-status.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { Digest, SignedDigest } from '#shared/updates/update-manifest.ts';
import { Trust } from './key-trust.ts';

/** All transitions. Before SWITCHING a newer manifest restarts the update at VERIFIED. */
export const TRANSITIONS: Record<UpdateState, readonly UpdateState[]> = {
  IDLE: ['VERIFIED'],
  VERIFIED: ['PREFLIGHT', 'VERIFIED', 'IDLE'],
  PREFLIGHT: ['PULLED', 'VERIFIED', 'IDLE'],
  PULLED: ['STAGED', 'VERIFIED', 'IDLE'],
  STAGED: ['SWITCHING', 'VERIFIED', 'IDLE'],
  // From SWITCHING on only the switcher writes the row.
  SWITCHING: ['PROBATION', 'ROLLED_BACK'],
  PROBATION: ['COMMITTED', 'ROLLED_BACK'],
  COMMITTED: ['VERIFIED', 'IDLE'],
  ROLLED_BACK: ['VERIFIED', 'IDLE'],
};

/** States in which no update is in progress. */
export const RESTING_STATES: readonly UpdateState[] = ['IDLE', 'COMMITTED', 'ROLLED_BACK'];
/** States in which the agent is being replaced: only the switcher acts. */
export const SWITCHER_STATES: readonly UpdateState[] = ['SWITCHING', 'PROBATION'];

const Target = z.object({ sequence: z.int(), digest: Digest });
export type Target = z.output<typeof Target>;

/** A pod that ran before the update, with its container and generation. */
const PodMark = z.object({ id: z.string(), container_id: z.string(), generation: z.int() });
export type PodMark = z.output<typeof PodMark>;

/** Data for a rollback. Stored before anything is changed. */
const RollbackPoint = z.object({
  /** Id of the old container, or name of the old release. */
  old_id: z.string(),
  /** Restart policy of the old container; empty for a release. */
  restart_policy: z.record(z.string(), z.unknown()),
  pods: z.array(PodMark),
  /** The reason for the rollback, once it is decided. A restarted switcher continues the rollback. */
  back: z.object({ reason: z.string(), message: z.string() }).nullable(),
});
export type RollbackPoint = z.output<typeof RollbackPoint>;

export const UpdateRow = z.object({
  state: z.enum(UPDATE_STATES),
  since_ms: z.int(),
  /** Sequence and digest of the newest accepted manifest. Older ones are never accepted. */
  sequence: z.int(),
  digest: Digest.nullable(),
  target: Target.nullable(),
  /** The signed manifest of the target. A switcher with a tree of releases verifies it again. */
  signed: SignedDigest.nullable().default(null),
  /** The accepted key set; null before the first. */
  trust: Trust.nullable().default(null),
  passage: RollbackPoint.nullable(),
  reason: z.string().nullable(),
  message: z.string(),
  /** Number of rollbacks of the target in a row, and the time of the next attempt. */
  attempts: z.int(),
  denied_until_ms: z.int(),
  last_check_ms: z.int().nullable(),
  next_check_ms: z.int(),
});
export type UpdateRow = z.output<typeof UpdateRow>;

export const NO_UPDATE: UpdateRow = {
  state: 'IDLE',
  since_ms: 0,
  sequence: 0,
  digest: null,
  target: null,
  signed: null,
  trust: null,
  passage: null,
  reason: null,
  message: '',
  attempts: 0,
  denied_until_ms: 0,
  last_check_ms: null,
  next_check_ms: 0,
};

/** Returns `row` in state `to`. Throws RangeError if the transition is not in the table. */
export function transition(
  row: UpdateRow,
  to: UpdateState,
  change: Partial<UpdateRow> & { since_ms: number },
): UpdateRow {
  if (!TRANSITIONS[row.state].includes(to))
    throw new RangeError(`${row.state} does not lead to ${to}`);
  return { ...row, reason: null, message: '', ...change, state: to };
}

const FIRST_BACK_OFF_MS = 3_600_000;
const LAST_BACK_OFF_MS = 24 * 3_600_000;

/** Returns the time until a target is retried after `attempts` rollbacks: an hour, doubled each time, at most a day. */
export function backOffMs(attempts: number): number {
  return Math.min(LAST_BACK_OFF_MS, FIRST_BACK_OFF_MS * 2 ** Math.max(0, attempts - 1));
}

/** Returns the status of an agent that does not update itself. */
export function noUpdates(): UpdateStatus {
  return statusOf(NO_UPDATE, null, null);
}

/**
 * Returns the body of GET /update-status, which is also part of the inventory. `running`: digests of the running image;
 * null before the first check.
 */
export function statusOf(
  row: UpdateRow,
  kind: UpdateStatus['kind'],
  running: readonly string[] | null,
): UpdateStatus {
  const current = running?.find((digest) => digest === row.digest) ?? running?.[0] ?? null;
  const isKnown = current !== null && row.digest !== null;
  return {
    kind,
    state: row.state,
    running_version: VERSION,
    current_digest: current,
    sequence: row.sequence,
    target_digest: row.target?.digest ?? null,
    target_sequence: row.target?.sequence ?? null,
    update_pending: isKnown ? current !== row.digest : null,
    reason: row.reason,
    message: row.message,
    attempts: row.attempts,
    since_ms: row.since_ms === 0 ? null : row.since_ms,
    last_check_ms: row.last_check_ms,
    next_check_ms: row.last_check_ms === null ? null : row.next_check_ms,
  };
}
