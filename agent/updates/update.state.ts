/** The states of an update, the moves between them, and the row that holds them, as data (validator reference 4.3). Pure. */
import { z } from 'zod';
import { UPDATE_STATES, type UpdateState } from '#shared/api/agent/update-status.ts';
import { Digest, SignedDigest } from '#shared/updates/update-manifest.ts';

/** Every move there is. A newer manifest begins anew wherever the agent still is what it was. */
export const MOVES: Record<UpdateState, readonly UpdateState[]> = {
  IDLE: ['VERIFIED'],
  VERIFIED: ['PREFLIGHT', 'VERIFIED', 'IDLE'],
  PREFLIGHT: ['PULLED', 'VERIFIED', 'IDLE'],
  PULLED: ['STAGED', 'VERIFIED', 'IDLE'],
  STAGED: ['SWITCHING', 'VERIFIED', 'IDLE'],
  // From here on the row is the switcher's.
  SWITCHING: ['PROBATION', 'ROLLED_BACK'],
  PROBATION: ['COMMITTED', 'ROLLED_BACK'],
  COMMITTED: ['VERIFIED', 'IDLE'],
  ROLLED_BACK: ['VERIFIED', 'IDLE'],
};

/** Nothing is under way. */
export const RESTING: readonly UpdateState[] = ['IDLE', 'COMMITTED', 'ROLLED_BACK'];
/** The agent itself is being replaced: only the switcher acts. */
export const SWITCHERS: readonly UpdateState[] = ['SWITCHING', 'PROBATION'];

const Target = z.object({ sequence: z.int(), digest: Digest });
export type Target = z.output<typeof Target>;

/** A pod that ran, its container, and what had been asked of it until then. */
const PodMark = z.object({ id: z.string(), container_id: z.string(), generation: z.int() });
export type PodMark = z.output<typeof PodMark>;

/** What the way back needs: recorded before anything is touched. */
const Passage = z.object({
  /** The container or the release that is replaced; of a container, how the engine is to restart it. */
  old_id: z.string(),
  restart_policy: z.record(z.string(), z.unknown()),
  pods: z.array(PodMark),
  /** Why it goes back, once that is decided: a switcher that is killed meanwhile does not change its mind. */
  back: z.object({ reason: z.string(), message: z.string() }).nullable(),
});
export type Passage = z.output<typeof Passage>;

export const UpdateRow = z.object({
  state: z.enum(UPDATE_STATES),
  since_ms: z.int(),
  /** The newest manifest that was taken, and what it asked for: none older is ever taken. */
  sequence: z.int(),
  digest: Digest.nullable(),
  target: Target.nullable(),
  /** What asked for the target, as it was signed: whoever replaces the agent looks again. */
  signed: SignedDigest.nullable().default(null),
  passage: Passage.nullable(),
  reason: z.string().nullable(),
  message: z.string(),
  /** How often the target was rolled back in a row, and until when it is left alone for that. */
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
  passage: null,
  reason: null,
  message: '',
  attempts: 0,
  denied_until_ms: 0,
  last_check_ms: null,
  next_check_ms: 0,
};

/** `row` in another state; throws RangeError for a move that there is not. */
export function moved(
  row: UpdateRow,
  to: UpdateState,
  change: Partial<UpdateRow> & { since_ms: number },
): UpdateRow {
  if (!MOVES[row.state].includes(to)) throw new RangeError(`${row.state} does not lead to ${to}`);
  return { ...row, reason: null, message: '', ...change, state: to };
}

const FIRST_BACK_OFF_MS = 3_600_000;
const LAST_BACK_OFF_MS = 24 * 3_600_000;

/** How long a target that was rolled back so many times is left alone: an hour, doubled each time, at most a day. */
export function backOffMs(attempts: number): number {
  return Math.min(LAST_BACK_OFF_MS, FIRST_BACK_OFF_MS * 2 ** Math.max(0, attempts - 1));
}
