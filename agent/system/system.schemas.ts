/** Wire forms of the agent's public routes that only operators read. */
import { z } from 'zod';

export const Health = z.object({ status: z.literal('ok') });

/** Told by the updater; without one nothing is pending and nothing is expected. */
export const UpdateStatus = z.object({
  update_pending: z.boolean(),
  running_version: z.string(),
  expected_version: z.string().nullable(),
});
