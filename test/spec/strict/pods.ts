/** Rentals, pods and their events. */
import { z } from 'zod';
import { Location, NodeRow, Notice, Specs } from './nodes.ts';
import { Volume } from './resources.ts';
import { b, i, maybe, n, paged, Success, s, strings, t, u } from './types.ts';

const STATUSES = [
  ...['PENDING', 'START_PENDING', 'RUNNING', 'REBOOT_PENDING', 'STOP_PENDING', 'STOPPED'],
  ...['FAILED', 'CREATION_FAILED', 'REBOOT_FAILED', 'BROKEN', 'DELETING'],
];
const PHASES = [
  ...['queued', 'building', 'pulling', 'starting', 'restoring', 'configuring', 'ready'],
  ...['rebooting', 'stopped', 'unreachable', 'deleting'],
];

const PodTemplate = z.object({
  id: s,
  name: s,
  description: s,
  docker_image: s,
  docker_image_tag: s,
  docker_image_digest: s,
  category: s,
  volumes: strings,
  environment: z.record(s, s),
  entrypoint: s,
  internal_ports: z.array(i),
  is_private: b,
  startup_commands: s,
});
const PodExecutor = z.object({
  id: u,
  huid: s,
  machine_name: s,
  price_per_gpu: n,
  price_per_hour: n,
  executor_ip_address: s,
  validator_hotkey: maybe(s),
  gpu_count: i,
  specs: Specs,
  active: b,
  location: maybe(Location),
  uptime_in_minutes: maybe(i),
});

const pod = {
  id: u,
  pod_name: s,
  status: z.enum(STATUSES),
  // The key is always present.
  ssh_connect_cmd: s.regex(/^ssh \S+@\S+(?: -p \d+)?$/).nullable(),
  ports_mapping: z.record(s.regex(/^\d+$/), i),
  gpu_name: s,
  gpu_count: s.regex(/^\d+$/),
  cpu_name: s,
  cpu_count: maybe(i),
  ram_total: i,
  price: n,
  created_at: t,
  updated_at: t,
  removal_scheduled_at: maybe(t),
  termination_hours: maybe(n),
  jupyter_installation_status: maybe(z.enum(['SUCCESS', 'FAILED'])),
  jupyter_url: maybe(s),
  enable_jupyter: b,
  jupyter_error: maybe(s),
  is_favorite: b,
  template: PodTemplate,
  executor: PodExecutor,
  executor_id: u,
  template_id: maybe(u),
  user_id: u,
  volume: maybe(Volume),
  ssh_keys: z.array(z.object({ id: s.min(1), name: s, public_key: s })),
  notice_period: maybe(Notice),
  source: s,
  client_version: maybe(s),
  created_by_api_key_id: maybe(u),
  skip_add_agent_ssh_key: b,
  phase: maybe(z.enum(PHASES)),
  estimated_ready_seconds: maybe(n),
  eta_basis: maybe(s),
  enable_volume_encryption: maybe(b),
  volume_encryption_status: maybe(s),
  reason_code: maybe(s),
  max_spend_usd: maybe(n),
  idle_shutdown_minutes: maybe(i),
  spent_usd: n,
};
/** A pod is ready when it runs and has a command; clients wait for both. */
const isReady = (row: { status: string; ssh_connect_cmd: string | null }) =>
  row.status === 'RUNNING' || row.ssh_connect_cmd === null;
const NOT_READY = 'ssh_connect_cmd is set although the pod does not run';

export const PodRow = z.object(pod).refine(isReady, NOT_READY);
export const DeletedPod = Success.extend(pod);
export const Rental = Success.extend({ ...pod, pod_id: u });
export const PodWithKeys = z.object({ ...pod, added: i, already_present: i });
export const Tombstone = z.object({
  ...pod,
  status: z.literal('DELETED'),
  deleted_at: t,
});
export const PodHistory = paged(Tombstone);

export const Event = z.object({
  id: u,
  created_at: t,
  event_type: s,
  sub_event_type: s.regex(/^[a-z-]+\.(?:requested|success|failed|status)$/),
  pod_id: maybe(u),
  pod_name: maybe(s),
  actor: maybe(
    z.object({
      auth: z.enum(['session', 'api_key', 'provider', 'validator', 'system']),
      api_key_id: maybe(s),
      api_key_name: maybe(s),
    }),
  ),
  from_status: maybe(s),
  to_status: maybe(s),
  reason: maybe(s),
  detail: maybe(s),
  error: maybe(s),
  request_id: maybe(s),
  event: z.object({ pod_name: s, node: s, error: maybe(s) }),
});

export const BackupConfig = z.object({
  id: u,
  pod_id: u,
  pod_executor_id: u,
  backup_frequency_hours: i,
  retention_days: i,
  backup_path: s,
  is_active: b,
  created_at: t,
  updated_at: t,
});
const detail = {
  executor_status: z.object({ logs: strings }),
  last_event: maybe(Event),
  executor: PodExecutor.extend({ disk_health_ok: maybe(b) }),
  backup_config: maybe(BackupConfig),
};
export const PodDetail = z.object({ ...pod, ...detail }).refine(isReady, NOT_READY);

const Alternative = z.object({
  id: u,
  machine_name: s,
  gpu_count: i,
  available_gpu_count: i,
  price_per_gpu: n,
  price_per_hour: n,
  download_mbps: n,
  country_code: s,
});
export const RentalBySpec = z.object({
  success: b,
  dry_run: b,
  pod_id: maybe(u),
  id: maybe(u),
  pod: maybe(PodRow),
  template_id: maybe(u),
  price_per_hour: n,
  selected_executor: NodeRow,
  candidates: i,
  alternatives_considered: z.array(Alternative),
  attempts: i,
});

export const Statement = z.object({
  pod_id: u,
  total: n,
  refunded: n,
  billed_seconds: i,
  unposted: n,
  period_count: i,
  currency: z.literal('USD'),
  lines: z.array(
    z.object({
      from: t,
      to: t,
      state: s,
      cause: s,
      gpu_count: i,
      price_per_gpu: n,
      amount: n,
    }),
  ),
});

export const Feedback = z.object({
  id: u,
  pod_id: u,
  user_id: u,
  rating: i.min(1).max(5),
  category: s,
  comment: s,
  contact_ok: b,
  created_at: t,
});
const REPORT_STATES = ['open', 'examining', 'confirmed', 'not_confirmed', 'expired'] as const;
export const PodReport = z.object({
  id: u,
  pod_id: u,
  executor_id: u,
  reason: s,
  description: s,
  consent: b,
  status: z.enum(REPORT_STATES),
  refund: n,
  finding: maybe(s),
  evidence: maybe(z.object({ document: s, signature: s.startsWith('0x') })),
  created_at: t,
  ended_at: maybe(t),
});
export const ReportedOutcome = z.object({ status: z.enum(REPORT_STATES), refund: n });
export const ChatChannel = z.object({
  channel_id: s,
  channel_name: s,
  channel_url: maybe(s),
  created: b,
  pod_id: u,
  created_at: t,
});
