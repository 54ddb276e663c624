/** State of an agent's update (GET /update-status, and in its inventory). */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
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

export const UpdateStatus = z.object(
  described(
    {
      kind: z.enum(['image-digest']).nullable(),
      state: z.enum(UPDATE_STATES),
      running_version: Name,
      current_digest: Name.nullable(),
      sequence: Counter,
      target_digest: Name.nullable(),
      target_sequence: Counter.nullable(),
      update_pending: z.boolean().nullable(),
      reason: Name.nullable(),
      message: Text,
      attempts: Counter,
      since_ms: HostTime.nullable(),
      last_check_ms: HostTime.nullable(),
      next_check_ms: HostTime.nullable(),
    },
    {
      kind: 'Kind of update; null if the agent does not update itself, and then the other members have no meaning.',
      state: 'State of the update.',
      running_version: 'Version that runs.',
      current_digest:
        'Digest of the running image; null if it is not from the configured repository.',
      sequence: 'Sequence of the newest accepted manifest.',
      target_digest: 'Digest that is being installed, or that was rolled back last; null for none.',
      target_sequence: 'Sequence of the target digest; null for none.',
      update_pending:
        'True if another digest is to be installed; null while the running digest or the required digest is unknown.',
      reason: 'Why the update is blocked or was rolled back; null if it is not.',
      message: 'The reason, as a sentence.',
      attempts: 'Number of rollbacks of the target.',
      since_ms: 'Time of the present state, milliseconds since the epoch; null if unknown.',
      last_check_ms:
        'Time of the last check for updates, milliseconds since the epoch; null before the first.',
      next_check_ms:
        'Time of the next check, milliseconds since the epoch; null if none is planned.',
    },
  ),
);
export type UpdateStatus = z.output<typeof UpdateStatus>;
