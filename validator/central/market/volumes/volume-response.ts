/** Converts a volume to its form in API responses. Pure. */
import { naiveUtc } from '#shared/runtime/clock.ts';
import type { Volume, VolumeCopy } from '../../platform/database/tables.ts';
import type { VolumeResponse, VolumeStatsResponse } from './volume.schemas.ts';
import { STALE_AFTER_MS, volumeStatus } from './volume.state.ts';

const MIB = 1_024 ** 2;
const GIB = 1_024 ** 3;

/** `copy` is the volume's current copy; null without one. */
export function volumeResponse(volume: Volume, copy: VolumeCopy | null): VolumeResponse {
  return {
    id: volume.id,
    name: volume.name,
    description: volume.description,
    ...sizesOf(volume),
    size_limit_bytes: volume.limit_bytes,
    status: volumeStatus(volume.attached_pod_id, copy?.state ?? null),
    executor_id: copy?.executor_id ?? null,
    last_saved_at: timeOf(volume.saved_at),
    progress: copy?.operation_id == null ? null : copy.percent,
    message: copy?.error_message ?? null,
    created_at: naiveUtc(volume.created_at),
    updated_at: naiveUtc(volume.updated_at),
  };
}

export function volumeStats(
  volume: Volume,
  copy: VolumeCopy | null,
  nowMs: number,
): VolumeStatsResponse {
  const sinceMs = Math.max(volume.measured_at ?? 0, copy?.created_at ?? 0);
  return {
    volume_id: volume.id,
    ...sizesOf(volume),
    stale: copy?.state === 'attached' && nowMs - sinceMs >= STALE_AFTER_MS,
  };
}

function sizesOf({ bytes, files, measured_at, attached_pod_id }: Volume) {
  return {
    current_size_bytes: bytes,
    current_size_mb: bytes / MIB,
    current_size_gb: bytes / GIB,
    current_file_count: files,
    last_metrics_update: timeOf(measured_at),
    attached_pod_id,
  };
}

function timeOf(epochMs: number | null): string | null {
  return epochMs === null ? null : naiveUtc(epochMs);
}
