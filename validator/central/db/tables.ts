/**
 * Every table of the central API. Portable subset of SQLite and PostgreSQL: ids as text, times as integer
 * milliseconds UTC, money as integer micro-dollars, flags as 0/1, JSON as text (style reference B.5).
 */
import type { Generated, Insertable, Kysely, Selectable, Transaction } from 'kysely';
import type { OperationState } from '../backups/backup.state.ts';
import type { VerifyStatus } from '../backups/drill.state.ts';
import type { MachineRequestState } from '../machine-requests/machine-request.state.ts';
import type { CopyState } from '../volumes/volume.state.ts';

type Flag = 0 | 1;

type Stamped = { created_at: number; updated_at: number };

export type AccountsTable = Stamped & {
  id: string;
  email: string;
  /** Trimmed and lower-cased; unique. */
  email_norm: string;
  email_verified_at: number | null;
  password_hash: string;
  name: string;
  balance_uusd: number;
  default_template_id: string | null;
  referral_code: string;
  company_name: string | null;
  avatar_url: string | null;
  disable_incoming_connections: Generated<Flag>;
  /** Hours after which rentals end unless they say otherwise, by source. */
  termination_hours_json: Generated<string>;
  /** When the sign-up credit was granted, which happens once. */
  signup_credit_at: number | null;
  /** The account on the chat platform; unique. */
  chat_user_id: string | null;
  chat_username: string | null;
  /** Set once the account is gone; the row stays for events and money that name it. */
  deleted_at: number | null;
};

/** Addresses that had a sign-up credit, hashed under the deployment's secret: none gets a second one. */
export type SignupCreditsTable = { email_hash: string; granted_at: number };

/** Single-use tokens that were mailed; a used one is deleted. */
export type AccountTokensTable = {
  /** SHA-256 hex. */
  token_hash: string;
  account_id: string;
  purpose: 'verify-email' | 'reset-password';
  /** Where it was sent: it proves this address and no later one. */
  email_norm: string;
  created_at: number;
  expires_at: number;
};

export type MailsTable = Stamped & {
  id: string;
  account_id: string;
  /** Unique: what happened once is mailed once. */
  dedupe_key: string;
  kind: string;
  to_address: string;
  /** Subject and bodies, sealed because they hold tokens; empty once nobody needs them. */
  sealed: string;
  /** `kept`: nothing sends mails here, it is read in the outbox. */
  state: 'kept' | 'waiting' | 'sent' | 'failed' | 'expired';
  due_at: number;
  /** What it says has no use from then on. */
  useful_until: number;
  attempts: number;
  last_error: string | null;
};

/** One row per signed upload address. */
export type UploadsTable = {
  object_key: string;
  account_id: string;
  purpose: 'avatar' | 'feedback' | 'template_readme';
  content_type: string;
  size_bytes: number;
  created_at: number;
  /** Of the address. */
  expires_at: number;
  /** Null until it was used; stays null where the object store is another's. */
  stored_at: number | null;
};

/** Links to the chat platform that were begun; a used one is deleted. */
export type ChatLinkStatesTable = {
  state_hash: string;
  account_id: string;
  /** The PKCE verifier, sealed. */
  verifier_sealed: string;
  created_at: number;
  expires_at: number;
};

/** Revocable sessions; the JWT carries the id. */
export type SessionsTable = {
  id: string;
  kind: 'user' | 'portal';
  /** Account id or provider id, by kind. */
  subject_id: string;
  created_at: number;
  expires_at: number;
  revoked_at: number | null;
};

export type ApiKeysTable = Stamped & {
  id: string;
  account_id: string;
  name: string;
  /** First 10 and last 5 characters, for the masked display. */
  prefix: string;
  suffix: string;
  /** SHA-256 hex; unique. */
  key_hash: string;
  /** AES-256-GCM of the key under the deployment's secret. */
  key_sealed: string;
  is_active: Flag;
  expires_at: number | null;
  last_used_at: number | null;
  deleted_at: number | null;
};

export type SshKeysTable = Stamped & {
  id: string;
  account_id: string;
  name: string;
  public_key: string;
  /** `SHA256:…`; unique per account. */
  fingerprint: string;
};

/** Logins for image registries. */
export type DockerCredentialsTable = Stamped & {
  id: string;
  account_id: string;
  /** Empty: none was given. */
  name: string;
  docker_username: string;
  /** AES-256-GCM of the password under the deployment's secret. */
  password_sealed: string;
};

export type TemplatesTable = Stamped & {
  id: string;
  /** Null: official. */
  account_id: string | null;
  name: string;
  description: string;
  docker_image: string;
  docker_image_tag: string;
  docker_image_digest: string;
  docker_image_size: number | null;
  /** Of the template's owner. */
  docker_credential_id: string | null;
  category: string;
  status: string;
  is_private: Flag;
  one_time_template: Flag;
  is_temporary: Flag;
  /** When a one-time or temporary template was rented; it cannot be rented again. */
  used_at: number | null;
  internal_ports_json: string;
  environment_json: string;
  volumes_json: string;
  entrypoint: string;
  startup_commands: string;
  readme: string;
  container_start_immediately: Flag;
  deleted_at: number | null;
};

export type ProvidersTable = Stamped & {
  id: string;
  hotkey: string;
  coldkey: string | null;
  email: string | null;
  opted_in: Flag;
  banned_at: number | null;
};

/** Single use of signed portal log-ins. */
export type LoginNoncesTable = { hotkey: string; message: string; expires_at: number };

export type ExecutorsTable = Stamped &
  MeasuredFigures &
  LineFigures & {
    id: string;
    provider_id: string;
    ip_address: string;
    port: number;
    /** As the provider said when adding it. */
    gpu_type: string;
    gpu_count: number;
    price_uusd_per_gpu_hour: number;
    min_gpu_count: number | null;
    collateral_deposited: Flag;
    lat: number | null;
    lon: number | null;
    location_json: string | null;
    state: 'queued' | 'verified' | 'failed' | 'removed';
    paused: Flag;
    /** Of the last verdict; null before the first. */
    validator_hotkey: string | null;
    verdict_at: number | null;
    checks_json: string;
    /** Full GPU name as measured; null before the first verified verdict. */
    machine_name: string | null;
    driver_version: string | null;
    /** The Inventory of the last verdict that had one. */
    inventory_json: string | null;
    simulated: Flag;
    first_verified_at: number | null;
    /** When the agent last answered. */
    last_seen_at: number | null;
    removed_at: number | null;
    /** Its GPU slots, and those that no pod holds; counted in gpu-slot.store.ts. */
    slots_total: number;
    slots_free: number;
    /** Higher with every change that the market shows; written by the database (0009-market-revisions.ts). */
    revision: Generated<number>;
  };

/** Out of the latest report that had them; null before. In megabits a second. */
export type LineFigures = { download_mbps: number | null; upload_mbps: number | null };

/** Out of `inventory_json`, for searches; null where nothing was measured (executors/measured-figures.ts). */
export type MeasuredFigures = {
  /** Of the card that has least. */
  gpu_memory_mib: number | null;
  cpu_cores: number | null;
  memory_kib: number | null;
  disk_free_kib: number | null;
  ports_free: number | null;
  sysbox_runtime: Flag | null;
  /** Whether its engine hands out single GPUs. */
  can_split: Flag | null;
  /** Whether NVLink joins every two of its cards. */
  nvlink: Flag | null;
};

/** One row per GPU of an executor: `pod_id` is the guard against renting a GPU twice. */
export type GpuSlotsTable = {
  executor_id: string;
  idx: number;
  gpu_uuid: string;
  pod_id: string | null;
};

export type PodsTable = Stamped & {
  id: string;
  account_id: string;
  executor_id: string;
  /** Empty for a pod that was rented by a Dockerfile. */
  template_id: string;
  /** The template as it was when rented or last changed to. */
  template_json: string;
  /** `updated_at` of the template that was last changed to, with or without success; null before. */
  template_tried_at: number | null;
  pod_name: string;
  gpu_count: number;
  price_uusd_per_gpu_hour: number;
  /** Held from the balance until billing takes over. */
  hold_uusd: number;
  state: string;
  phase: string;
  reason_code: string | null;
  message: string;
  /** The spec that the agent is to run; the row is its own outbox. */
  generation: number;
  spec_json: string;
  /** By what its image is known (executors/launch-estimate.ts), as it was rented; null for one built on its node. */
  image_key: string | null;
  /** While a change is under way: what to return to if its node undoes it (pods/pod-change.ts). */
  previous_json: string | null;
  /** Last generation that the agent acknowledged. */
  acknowledged_generation: number;
  reboots_requested: number;
  reboots_acknowledged: number;
  ports_json: string;
  ssh_keys_json: string;
  source: string;
  client_version: string | null;
  created_by_api_key_id: string | null;
  /** What its image is pulled with. */
  docker_credential_id: string | null;
  is_favorite: Flag;
  removal_at: number | null;
  /** When the next warning of that removal is due; null: none is left (pods/removal-warnings.ts). */
  removal_warning_at: number | null;
  termination_hours: number | null;
  /** Kept for the renter; nothing is metered yet. */
  max_spend_uusd: number | null;
  idle_shutdown_minutes: number | null;
  /** Asked for with the rental; kept for the renter. */
  enable_volume_encryption: Flag;
  first_running_at: number | null;
  /** When it will probably be ready; null when nobody can tell. Means nothing once it has run. */
  ready_expected_at: number | null;
  /** What that rests on (executors/launch-estimate.ts). */
  eta_basis: string | null;
  /** When the agent last reported this pod. */
  seen_at: number | null;
  delete_requested_at: number | null;
  /** Set once nothing of it is left on the node. */
  ended_at: number | null;
  /** Asked for with the rental. */
  enable_jupyter: Flag;
  /** Where a notebook server is wanted inside the pod; null: none is. */
  jupyter_port: number | null;
  /** How often one was asked for; the node is told so, and each has its own token. */
  jupyter_requests: number;
  /** Null until it is known. */
  jupyter_status: 'SUCCESS' | 'FAILED' | null;
  jupyter_error: string | null;
  /** Where its pages begin. */
  jupyter_path: string | null;
};

export type EventsTable = {
  seq: Generated<number>;
  id: string;
  account_id: string;
  pod_id: string | null;
  event_type: string;
  sub_event_type: string;
  created_at: number;
  actor_auth: string;
  actor_api_key_id: string | null;
  request_id: string | null;
  from_status: string | null;
  to_status: string | null;
  reason: string | null;
  /** `{pod_name, node, error?}` and more. */
  payload_json: string;
  /** Its place in its account's feed: 1, 2, …; null until somebody has read the feed (events/event-feed.store.ts). */
  feed_no: number | null;
};

/** Unused tickets for streams; a used one is deleted. */
export type StreamTicketsTable = {
  ticket_hash: string;
  account_id: string;
  /** Null: for the account's own feed. */
  pod_id: string | null;
  /** The headers that proved who asked, as JSON, sealed for the place `ticket_hash`. */
  credential_sealed: string;
  expires_at: number;
};

/** What renters say of their pods, ended ones included. */
export type FeedbackTable = {
  id: string;
  account_id: string;
  pod_id: string;
  /** 1 to 5. */
  rating: number;
  category: string | null;
  comment: string | null;
  contact_ok: Flag;
  /** Keys of uploads with the purpose feedback. */
  attachment_keys_json: string;
  created_at: number;
};

/** One row per pod whose renter asked for support. */
export type SupportChannelsTable = {
  pod_id: string;
  id: string;
  account_id: string;
  /** The renter on the chat platform, who is let in; null once the account is gone. */
  chat_user_id: string | null;
  name: string;
  topic: string | null;
  /** What the renter began with. */
  message: string | null;
  created_at: number;
};

/** One claim per (account, route, key); see rentals/idempotency.ts. */
export type IdempotencyTable = {
  account_id: string;
  route: string;
  key: string;
  fingerprint: string;
  state: 'running' | 'finished';
  /** The process that holds a running claim; that of a dead one is anybody's. */
  boot_id: string;
  status: number | null;
  body: string | null;
  created_at: number;
};

/** One row per living process of the central API (processes/process.service.ts). */
export type CentralProcessesTable = { boot_id: string; beat_at: number };

/** Executors with pods, when each is due and whose turn it is; used where processes share the work. */
export type SyncTurnsTable = {
  executor_id: string;
  due_at: number;
  /** Passes in a row without an answer. */
  failures: number;
  /** Woken during a turn: due again right after it. */
  woken: Flag;
  /** The process whose turn it is; null when it is nobody's. */
  boot_id: string | null;
};

export type BookmarksTable = {
  account_id: string;
  executor_id: string;
  id: string;
  created_at: number;
};

/** What a renter looks for and nobody offers yet (machine-requests/). */
export type MachineRequestsTable = Stamped & {
  id: string;
  account_id: string;
  /** Short GPU type or full name. */
  gpu_class: string;
  gpu_count: number | null;
  /** For all of its GPUs together. */
  budget_uusd_per_hour: number | null;
  /** Code or name. */
  country: string | null;
  /** Of each GPU. */
  min_vram_gb: number | null;
  notes: string | null;
  /** Whether its renter wants to hear when it is fulfilled. */
  notify: Flag;
  state: MachineRequestState;
  /** The node that was added for it; set exactly while it is fulfilled. */
  fulfilled_executor_id: string | null;
};

export type MetaTable = { name: string; value: string };

/** How fast images come to an executor, as measured over its pulls. */
export type PullSpeedsTable = {
  executor_id: string;
  bytes_per_second: number;
  /** That were counted. */
  pulls: number;
  /** Of the last one, by the executor's clock: each is counted once. */
  last_finished_ms: number;
  updated_at: number;
};

/** Compressed, by `name:tag` or `name:tag@digest`. */
export type ImageSizesTable = {
  image: string;
  compressed_bytes: number;
  /** 0: layers that a node had already are not in it. */
  is_whole: Flag;
  updated_at: number;
};

/** Where the backups of one pod lie; they may outlive it. */
export type BackupRepositoriesTable = {
  id: string;
  pod_id: string;
  account_id: string;
  /** Of the repository itself, sealed for the place `id`. */
  password_sealed: string;
  /** When its first backup had been made; null: there is nothing there that has to be found. */
  made_at: number | null;
  /** The process that takes snapshots out of it just now: meanwhile nothing may use it. */
  cleaning_boot_id: string | null;
  created_at: number;
  /** When everything in it was removed, for good. */
  removed_at: number | null;
};

/** One row per pod that ever had one: what is backed up, how often, and for how long it is kept. */
export type BackupConfigsTable = Stamped & {
  id: string;
  pod_id: string;
  account_id: string;
  backup_frequency_hours: number;
  retention_days: number;
  backup_path: string;
  /** The next run; null: it is not active. */
  next_at: number | null;
  /** When its newest backup is next read back; null: not planned yet. */
  drill_at: number | null;
};

/** What backups, restores and drills have in common: each is an operation on a node, there under the same id. */
export type OperationColumns = {
  id: string;
  account_id: string;
  pod_id: string;
  executor_id: string;
  repository_id: string;
  state: OperationState;
  /** As the node names it; null before it has taken it. */
  stage: string | null;
  /** 0-100, never falling. */
  percent: number;
  total_files: number | null;
  processed_files: number | null;
  total_bytes: number | null;
  processed_bytes: number | null;
  bytes_per_second: number | null;
  remaining_seconds: number | null;
  /** Before the first request to the node goes out: null means that it cannot know of it. */
  sent_at: number | null;
  /** When its end was asked for. */
  cancel_at: number | null;
  /** The last sign of life, by our clock. */
  heartbeat_at: number;
  /** The same by the node's clock. */
  node_heartbeat_ms: number | null;
  /** Settled here without its node, which is to end it as soon as it answers. */
  abandoned_at: number | null;
  error_code: string | null;
  error_message: string | null;
  /** The request that wanted it; null for scheduled ones. */
  request_id: string | null;
  created_at: number;
  started_at: number | null;
  /** Null exactly while it is PENDING or IN_PROGRESS. */
  completed_at: number | null;
};

export type BackupLogsTable = OperationColumns & {
  /** The schedule that wanted it; null for manual ones. */
  config_id: string | null;
  name: string | null;
  description: string | null;
  path: string;
  retention_days: number;
  snapshot_id: string | null;
  quality: string | null;
  /** Null once nothing of it is kept any more. */
  expires_at: number | null;
  /** Since when its snapshot is to be taken out of the repository; null when there is nothing to take out. */
  cleanup_at: number | null;
  /** Why that has not happened. */
  cleanup_problem: string | null;
  cleaned_at: number | null;
  /** Of the last drill; null before the first. */
  verify_status: VerifyStatus | null;
  /** When a drill last came to a verdict. */
  verified_at: number | null;
  verify_error: string | null;
  verify_error_code: string | null;
  /** What was read back. */
  verified_files: number | null;
  verified_bytes: number | null;
};

export type BackupDrillsTable = OperationColumns & {
  backup_id: string;
  snapshot_id: string;
  occasion: 'SCHEDULED' | 'REQUESTED';
};

export type RestoreLogsTable = OperationColumns & {
  backup_id: string;
  snapshot_id: string;
  source_path: string;
  target_path: string;
  mode: 'replace' | 'new_only';
  /** With the rental, or while the pod was running. */
  occasion: 'STARTUP' | 'LIVE';
  /** What the node did, line by line. */
  log: string;
};

/** One row for each validator. */
export type SetWeightsTable = {
  validator_hotkey: string;
  /** As it was posted. */
  payload_json: string;
  /** Microseconds since the epoch, as the validator says. */
  updated_at_micros: number;
  received_at: number;
};

/** One of an account's volumes: what is known of its data, and what of it is saved. */
export type VolumesTable = Stamped & {
  id: string;
  account_id: string;
  name: string;
  description: string;
  /** What its data may come to. */
  limit_bytes: number;
  /** The pod that has it, until nothing of that pod is left on its node. */
  attached_pod_id: string | null;
  /** As last measured on a node, or saved. */
  bytes: number;
  files: number;
  measured_at: number | null;
  /** Of its repository, which has its id; sealed for the place `id`. */
  password_sealed: string;
  /** When it was first saved; null: there is nothing in the repository that has to be found. */
  made_at: number | null;
  /** What the next pod gets; null: an empty volume. */
  snapshot_id: string | null;
  saved_at: number | null;
  /** 1: older snapshots are to be taken out of the repository. */
  has_waste: Flag;
  /** The process that cleans the repository just now: meanwhile nothing may use it. */
  cleaning_boot_id: string | null;
  /** The row goes with the repository. */
  deleted_at: number | null;
};

/** A volume's data on a node, there under this id; what lies on other nodes under other ids never meets it. */
export type VolumeCopiesTable = Stamped & {
  id: string;
  volume_id: string;
  account_id: string;
  /** The pod that has it, or had it last. */
  pod_id: string;
  executor_id: string;
  state: CopyState;
  /** What it is filled with before the pod starts; null: it begins empty. */
  source_snapshot_id: string | null;
  /** The restore or backup under way on the node; stored before it is sent. */
  operation_id: string | null;
  /** As the node names it. */
  stage: string | null;
  percent: number;
  /** Failed ones of the present state. */
  attempts: number;
  retry_at: number | null;
  /** Why the last attempt failed. */
  error_code: string | null;
  error_message: string | null;
  /** When its node last told of it, or was asked to make it. */
  seen_at: number;
};

export type Tables = {
  meta: MetaTable;
  accounts: AccountsTable;
  sessions: SessionsTable;
  api_keys: ApiKeysTable;
  ssh_keys: SshKeysTable;
  docker_credentials: DockerCredentialsTable;
  templates: TemplatesTable;
  providers: ProvidersTable;
  login_nonces: LoginNoncesTable;
  executors: ExecutorsTable;
  gpu_slots: GpuSlotsTable;
  pods: PodsTable;
  events: EventsTable;
  feedback: FeedbackTable;
  support_channels: SupportChannelsTable;
  idempotency: IdempotencyTable;
  stream_tickets: StreamTicketsTable;
  signup_credits: SignupCreditsTable;
  account_tokens: AccountTokensTable;
  mails: MailsTable;
  uploads: UploadsTable;
  chat_link_states: ChatLinkStatesTable;
  central_processes: CentralProcessesTable;
  sync_turns: SyncTurnsTable;
  bookmarks: BookmarksTable;
  machine_requests: MachineRequestsTable;
  pull_speeds: PullSpeedsTable;
  image_sizes: ImageSizesTable;
  backup_repositories: BackupRepositoriesTable;
  backup_configs: BackupConfigsTable;
  backup_logs: BackupLogsTable;
  restore_logs: RestoreLogsTable;
  backup_drills: BackupDrillsTable;
  set_weights: SetWeightsTable;
  volumes: VolumesTable;
  volume_copies: VolumeCopiesTable;
};

/** What every store function takes first: the database, or the transaction it runs in. */
export type Db = Kysely<Tables> | Transaction<Tables>;
export type Database = Kysely<Tables>;

export type Account = Selectable<AccountsTable>;
export type ApiKey = Selectable<ApiKeysTable>;
export type SshKey = Selectable<SshKeysTable>;
export type DockerCredential = Selectable<DockerCredentialsTable>;
export type Template = Selectable<TemplatesTable>;
export type Provider = Selectable<ProvidersTable>;
export type Executor = Selectable<ExecutorsTable>;
export type NewExecutor = Insertable<ExecutorsTable>;
export type GpuSlot = Selectable<GpuSlotsTable>;
export type Pod = Selectable<PodsTable>;
export type Feedback = Selectable<FeedbackTable>;
export type SupportChannelRow = Selectable<SupportChannelsTable>;
export type EventRow = Selectable<EventsTable>;
export type MailRow = Selectable<MailsTable>;
export type Upload = Selectable<UploadsTable>;
export type Bookmark = Selectable<BookmarksTable>;
export type MachineRequest = Selectable<MachineRequestsTable>;
export type BackupRepository = Selectable<BackupRepositoriesTable>;
export type BackupConfig = Selectable<BackupConfigsTable>;
export type BackupLog = Selectable<BackupLogsTable>;
export type RestoreLog = Selectable<RestoreLogsTable>;
export type BackupDrill = Selectable<BackupDrillsTable>;
export type Volume = Selectable<VolumesTable>;
export type VolumeCopy = Selectable<VolumeCopiesTable>;
export type NewEvent = Insertable<EventsTable>;
