/** How the update of an agent stands: GET /update-status, and in its inventory. */
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
  /** Null: this agent is not set up to update itself, and nothing below is known. */
  kind: z.enum(['image-digest']).nullable(),
  state: z.enum(UPDATE_STATES),
  running_version: Name,
  /** Of the image that runs; null where it is none of the configured repository. */
  current_digest: Name.nullable(),
  /** Of the newest manifest that was taken. */
  sequence: Counter,
  /** What it is on the way to, or was when it was rolled back. */
  target_digest: Name.nullable(),
  target_sequence: Counter.nullable(),
  /** Null while either digest is unknown. */
  update_pending: z.boolean().nullable(),
  /** Why it does not go on, or went back. */
  reason: Name.nullable(),
  message: Text,
  /** How often the target was rolled back. */
  attempts: Counter,
  since_ms: HostTime.nullable(),
  last_check_ms: HostTime.nullable(),
  next_check_ms: HostTime.nullable(),
});
export type UpdateStatus = z.output<typeof UpdateStatus>;
