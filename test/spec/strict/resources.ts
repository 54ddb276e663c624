/** Templates, SSH keys, volumes, bookmarks, machine requests, secrets, backups and restores. */
import { z } from 'zod';
import { NodeRow } from './nodes.ts';
import { b, i, maybe, n, Percent, paged, Success, s, strings, t, u } from './types.ts';

export const Template = z.object({
  id: u,
  name: s,
  description: s,
  docker_image: s,
  docker_image_tag: s,
  docker_image_digest: s,
  docker_image_size: maybe(i),
  category: z.enum(['DOCKER', 'PYTORCH', 'NVIDIA', 'TENSOR_FLOW', 'OPEN_AI', 'UBUNTU']),
  status: z.enum(['CREATED', 'UPDATED', 'VERIFY_PENDING', 'VERIFY_SUCCESS', 'VERIFY_FAILED']),
  user_id: maybe(u),
  is_private: b,
  internal_ports: z.array(i),
  environment: z.record(s, s),
  entrypoint: s,
  startup_commands: s,
  volumes: strings,
  readme: s,
  one_time_template: b,
  is_temporary: b,
  tags: strings,
  container_start_immediately: b,
  supports_docker: maybe(b),
  docker_credential_id: maybe(u),
  created_at: t,
  updated_at: t,
});
export const DockerCredential = z.object({
  id: u,
  name: maybe(s),
  docker_username: s,
  created_at: t,
});
export const SshKey = z.object({
  id: u,
  name: s,
  public_key: s,
  user_id: u,
  created_at: t,
  updated_at: t,
});
export const Secret = z.object({ id: u, name: s, created_at: t, updated_at: t });

export const Volume = z.object({
  id: u,
  name: s,
  description: s,
  created_at: t,
  updated_at: t,
  current_size_bytes: i,
  current_file_count: i,
  current_size_gb: n,
  current_size_mb: n,
  last_metrics_update: maybe(t),
});
export const VolumeStats = z.object({
  volume_id: u,
  current_size_bytes: i,
  current_size_mb: n,
  current_size_gb: n,
  current_file_count: i,
  last_metrics_update: maybe(t),
  attached_pod_id: maybe(u),
  stale: b,
});

export const Bookmark = z.object({
  id: u,
  executor_id: u,
  created_at: t,
  executor: maybe(NodeRow),
});
export const Bookmarked = Success.extend({ executor_id: u, is_bookmarked: b });

export const MachineRequest = z.object({
  id: u,
  user_id: u,
  gpu_class: s,
  gpu_count: maybe(i),
  hourly_budget: maybe(n),
  country: maybe(s),
  min_vram_gb: maybe(n),
  notes: maybe(s),
  notify: b,
  status: z.enum(['pending', 'fulfilled', 'cancelled']),
  fulfilled_executor_id: maybe(u),
  created_at: t,
  updated_at: t,
});

const counters = {
  total_files: maybe(i),
  processed_files: maybe(i),
  total_bytes: maybe(i),
  processed_bytes: maybe(i),
};
const BACKUP_STATUSES = [
  ...['PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'CANCELLED', 'SKIPPED', 'EXPIRED'],
  'DELETED',
];
export const BackupTriggered = Success.extend({ backup_log_id: u });
export const BackupLog = z.object({
  id: u,
  backup_config_id: maybe(u),
  pod_id: u,
  name: maybe(s),
  description: maybe(s),
  status: z.enum(BACKUP_STATUSES),
  started_at: maybe(t),
  completed_at: maybe(t),
  error_message: maybe(s),
  progress: Percent,
  backup_volume_id: maybe(s),
  created_at: t,
  stage: maybe(s),
  ...counters,
  status_message: maybe(s),
  elapsed_seconds: maybe(n),
  throughput_bytes_per_second: maybe(n),
  estimated_remaining_seconds: maybe(n),
  deletion_state: maybe(s),
  physical_cleanup_at: maybe(t),
  sha256: maybe(s),
  verify_status: maybe(s),
  verify_error: maybe(s),
});
export const BackupLogs = paged(BackupLog);
export const RestoreTriggered = Success.extend({ restore_log_id: u });
export const RestoreLog = z.object({
  id: u,
  backup_id: u,
  pod_id: u,
  status: s,
  progress: Percent,
  started_at: maybe(t),
  completed_at: maybe(t),
  error_message: maybe(s),
  logs: maybe(s),
  restore_path: s,
  created_at: t,
  backup_engine: maybe(s),
  restore_mode: maybe(z.enum(['STARTUP', 'LIVE'])),
  stage: maybe(z.enum(['PREPARING', 'RESTORING', 'FINALIZING'])),
  salvage: b,
  lost_files: maybe(strings),
  lost_files_total: maybe(i),
  restarted_pod: maybe(b),
  last_heartbeat_at: maybe(t),
  ...counters,
});
export const RestoreLogs = paged(RestoreLog);
