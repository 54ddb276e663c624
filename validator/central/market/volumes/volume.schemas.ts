/** Requests and responses of the volume routes. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { CREATED_AT, UPDATED_AT } from '../../platform/openapi/field-texts.ts';
import { displayText, NaiveTime, optional, Uuid } from '../../platform/wire.ts';
import { VOLUME_STATUSES } from './volume.state.ts';

const MAX_NAME = 100;
const MAX_DESCRIPTION = 1_000;

const fields = {
  name: z
    .string()
    .trim()
    .min(1)
    .max(MAX_NAME)
    .regex(/^[\p{L}\p{N}\-_. ,()!?/]+$/u, 'Only letters, digits and - _ . space , ( ) ! ? /'),
  description: optional(displayText(MAX_DESCRIPTION)),
};

/** No member has a default, because the idempotency fingerprint covers the request as sent. */
export const VolumeRequest = z
  .object(
    described(fields, {
      name: 'Name of the volume, 1 to 100 letters, digits, spaces and `- _ . , ( ) ! ? /`.',
      description: 'Description, up to 1000 characters. Empty if absent.',
    }),
  )
  .meta({ id: 'VolumeRequest', example: { name: 'datasets', description: 'training data' } });
export type VolumeRequest = z.output<typeof VolumeRequest>;

/** Absent members are unchanged. */
export const VolumeUpdate = z
  .object(
    described(
      { ...fields, name: optional(fields.name) },
      {
        name: 'New name, 1 to 100 letters, digits, spaces and `- _ . , ( ) ! ? /`.',
        description: 'New description, up to 1000 characters.',
      },
    ),
  )
  .meta({ id: 'VolumeUpdate', example: { description: 'training data of May' } });
export type VolumeUpdate = z.output<typeof VolumeUpdate>;

const sizes = described(
  {
    current_size_bytes: z.int(),
    current_size_mb: z.number(),
    current_size_gb: z.number(),
    current_file_count: z.int(),
    last_metrics_update: NaiveTime.nullable(),
    attached_pod_id: z.uuid().nullable(),
  },
  {
    current_size_bytes: 'Size of the newest data in bytes.',
    current_size_mb: 'Size of the newest data in units of 2^20 bytes.',
    current_size_gb: 'Size of the newest data in units of 2^30 bytes.',
    current_file_count:
      'Number of files; while the volume is attached, folders and links are included.',
    last_metrics_update: 'Time of the last measurement (UTC); null before the first.',
    attached_pod_id: 'Id of the pod that uses the volume; null if no pod uses it.',
  },
);

export const Volume = z
  .object({
    ...sizes,
    ...described(
      {
        id: z.uuid(),
        name: z.string(),
        description: z.string(),
        size_limit_bytes: z.int(),
        status: z.enum(VOLUME_STATUSES),
        executor_id: z.uuid().nullable(),
        last_saved_at: NaiveTime.nullable(),
        progress: z.number().nullable(),
        message: z.string().nullable(),
        created_at: NaiveTime,
        updated_at: NaiveTime,
      },
      {
        id: 'Id of the volume.',
        name: 'Name of the volume.',
        description: 'Description of the volume; may be empty.',
        size_limit_bytes: 'Maximum size in bytes of data that is saved.',
        status: "State of the volume's data; the README of volumes explains each state.",
        executor_id:
          'Id of the node with the newest data; null if the newest data is saved in the storage.',
        last_saved_at:
          'Time of the saved data (UTC), which remains available if the node never answers again; null if nothing was saved.',
        progress: 'Percentage of the operation on the node; null if no operation runs.',
        message: 'Reason why saving or restoring makes no progress; null if there is progress.',
        created_at: CREATED_AT,
        updated_at: UPDATED_AT,
      },
    ),
  })
  .meta({ id: 'Volume' });
export type VolumeResponse = z.output<typeof Volume>;

export const VolumeStats = z
  .object({
    ...sizes,
    ...described(
      { volume_id: z.uuid(), stale: z.boolean() },
      {
        volume_id: 'Id of the volume.',
        stale: 'True if the volume is attached and was not measured for ten minutes.',
      },
    ),
  })
  .meta({ id: 'VolumeStats' });
export type VolumeStatsResponse = z.output<typeof VolumeStats>;

export const VolumeParams = z.object({ volume_id: Uuid });
