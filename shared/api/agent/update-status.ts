/** State of an agent's update (GET /update-status, and in its inventory). */
import { z } from 'zod';
import { Counter, HostTime, Name, Text } from './bounds.ts';

export const UPDATE_STATES = [
  'IDLE',
  'VERIFIED',
  'PREFLIGHT',
  'PULLED',
  'STAGED',
  'SWITCHING',
  'PROBATION',
  'COMMITTED',
  'ROLLED_BACK',
] as const;
export type UpdateState = (typeof UPDATE_STATES)[number];

export const UpdateStatus = z.object({
  /** Null if the agent is not configured to update itself; the other fields then have no meaning. */
  kind: z.enum(['image-digest']).nullable(),
  state: z.enum(UPDATE_STATES),
  running_version: Name,
  /** Digest of the running image; null if it is not from the configured repository. */
  current_digest: Name.nullable(),
  /** Sequence of the newest accepted manifest. */
  sequence: Counter,
  /** Digest that is being installed, or that was rolled back last. */
  target_digest: Name.nullable(),
  target_sequence: Counter.nullable(),
  /** Null while `current_digest` or `target_digest` is unknown. */
  update_pending: z.boolean().nullable(),
  /** Why the update is blocked or was rolled back. */
  reason: Name.nullable(),
  message: Text,
  /** Number of rollbacks of the target. */
  attempts: Counter,
  since_ms: HostTime.nullable(),
  last_check_ms: HostTime.nullable(),
  next_check_ms: HostTime.nullable(),
});
export type UpdateStatus = z.output<typeof UpdateStatus>;
