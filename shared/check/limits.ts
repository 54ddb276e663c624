/**
 * Limits that the doctors and the validator's checks have in common. The default check policy defines them; a validator
 * with another policy may require other values.
 */
import { join } from 'node:path';
import { z } from 'zod';
import defaultPolicy from './default-check-policy.json' with { type: 'json' };

/** Path of the default check policy. */
export const DEFAULT_CHECK_POLICY_FILE: string = join(
  import.meta.dirname,
  'default-check-policy.json',
);

/** These fields of a check policy. */
export const Limits = z.object({
  /** Differences between two clocks from which on a check warns and fails. */
  clock_warn_ms: z.int().min(0).max(600_000),
  clock_fail_ms: z.int().min(0).max(600_000),
  /** Free space on the disk of the pods. */
  min_free_disk_gib: z.int().min(0).max(1_000_000),
});
export type Limits = z.output<typeof Limits>;

/** Memory of the smallest pod, which every host must be able to run. Not part of the policy. */
export const LEAST_POD_BYTES = 2 ** 30;

export const DEFAULT_LIMITS: Limits = Limits.parse(defaultPolicy);
