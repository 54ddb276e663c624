/** Volumes on the wire (contract 8). */
import { z } from 'zod';
import { displayText, NaiveTime, optional, Uuid } from '../../platform/wire.ts';
import { VOLUME_STATUSES } from './volume.state.ts';

const MAX_NAME = 100;
const MAX_DESCRIPTION = 1_000;

/** No member has a default: the idempotency fingerprint covers what was sent. */
export const VolumeRequest = z
  .object({
    name: z
      .string()
      .trim()
      .min(1)
      .max(MAX_NAME)
      .regex(/^[\p{L}\p{N}\-_. ,()!?/]+$/u, 'Only letters, digits and - _ . space , ( ) ! ? /'),
    /** Absent: empty in a new one, left as it is in a change. */
    description: optional(displayText(MAX_DESCRIPTION)),
  })
  .meta({ id: 'VolumeRequest' });
export type VolumeRequest = z.output<typeof VolumeRequest>;

const sizes = {
  current_size_bytes: z.int(),
  /** Of 2^20 and 2^30 bytes. */
  current_size_mb: z.number(),
  current_size_gb: z.number(),
  /** Of one in use, folders and links count too. */
  current_file_count: z.int(),
  last_metrics_update: NaiveTime.nullable(),
  attached_pod_id: z.uuid().nullable(),
};

export const Volume = z
  .object({
    id: z.uuid(),
    name: z.string(),
    description: z.string(),
    ...sizes,
    size_limit_bytes: z.int(),
    status: z.enum(VOLUME_STATUSES),
    /** The node with the newest data; null: that is what was last saved. */
    executor_id: z.uuid().nullable(),
    /** How old is what a pod would get if that node never came back. */
    last_saved_at: NaiveTime.nullable(),
    /** 0-100 of what is under way on the node; null: nothing is. */
    progress: z.number().nullable(),
    /** Why saving or restoring does not get on. */
    message: z.string().nullable(),
    created_at: NaiveTime,
    updated_at: NaiveTime,
  })
  .meta({ id: 'Volume' });
export type VolumeResponse = z.output<typeof Volume>;

export const VolumeStats = z
  .object({
    volume_id: z.uuid(),
    ...sizes,
    /** A pod has it, and its node has not measured it for ten minutes. */
    stale: z.boolean(),
  })
  .meta({ id: 'VolumeStats' });
export type VolumeStatsResponse = z.output<typeof VolumeStats>;

export const VolumeParams = z.object({ volume_id: Uuid });
