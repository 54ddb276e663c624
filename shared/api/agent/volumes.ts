/**
 * Volumes that outlive pods, on the agent's wire. What lies on a host is a copy of one, under an id of its own: made
 * before the pod that gets it, filled by a restore, and kept after the pod until it is removed by its id.
 */
import { z } from 'zod';
import { Age, Amount, Bytes } from './bounds.ts';

/** Where a pod finds it. */
export const VOLUME_MOUNT_PATH = '/mnt';

export const VolumeCopyId = z.uuid();

/** A repeat changes nothing but the limit. */
export const VolumePut = z.strictObject({
  /** Whose copy it is, for people who look at the host. */
  volume_id: z.uuid(),
  /** What its data may come to: measured, as no kernel limits it. */
  size_bytes: Bytes.min(1),
});
export type VolumePut = z.output<typeof VolumePut>;

export const VolumeView = z.object({
  id: VolumeCopyId,
  volume_id: z.uuid(),
  size_bytes: Bytes,
  /** `removing`: it is gone as soon as nothing works on it any more; `removed`: nothing is left, said once. */
  state: z.enum(['present', 'removing', 'removed']),
  /** What lies in it, as last measured; null: not yet, or it cannot be. */
  bytes: Bytes.nullable(),
  /** Files, folders and links. */
  files: Amount.nullable(),
  measured_age_ms: Age.nullable(),
});
export type VolumeView = z.output<typeof VolumeView>;

export const VolumeList = z.object({ volumes: z.array(VolumeView).max(10_000) });
