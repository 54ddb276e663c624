/** Requests and responses of the volume routes. */
import { z } from 'zod';
import { displayText, NaiveTime, optional, Uuid } from '../../platform/wire.ts';
import { VOLUME_STATUSES } from './volume.state.ts';

const MAX_NAME = 100;
const MAX_DESCRIPTION = 1_000;

/** No member has a default, because the idempotency fingerprint covers the request as sent. */
export const VolumeRequest = z
  .object({
    name: z
      .string()
      .trim()
      .min(1)
      .max(MAX_NAME)
      .regex(/^[\p{L}\p{N}\-_. ,()!?/]+$/u, 'Only letters, digits and - _ . space , ( ) ! ? /'),
    /** Absent: empty for a new volume, unchanged in an update. */
    description: optional(displayText(MAX_DESCRIPTION)),
  })
  .meta({ id: 'VolumeRequest' });
export type VolumeRequest = z.output<typeof VolumeRequest>;

const sizes = {
  current_size_bytes: z.int(),
  /** MB and GB of 2^20 and 2^30 bytes. */
  current_size_mb: z.number(),
  current_size_gb: z.number(),
  /** While the volume is attached, folders and links are included. */
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
    /** The node with the newest data; null if the newest data is saved. */
    executor_id: z.uuid().nullable(),
    /** Time of the data that remains if that node never comes back. */
    last_saved_at: NaiveTime.nullable(),
    /** Percentage of the running operation on the node; null if none runs. */
    progress: z.number().nullable(),
    /** Why saving or restoring makes no progress. */
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
    /** The volume is attached and was not measured for ten minutes. */
    stale: z.boolean(),
  })
  .meta({ id: 'VolumeStats' });
export type VolumeStatsResponse = z.output<typeof VolumeStats>;

export const VolumeParams = z.object({ volume_id: Uuid });
