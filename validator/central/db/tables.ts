/**
 * Every table of the central API. Portable subset of SQLite and PostgreSQL: ids as text, times as integer
 * milliseconds UTC, money as integer micro-dollars, flags as 0/1, JSON as text (style reference B.5).
 */
import type { Generated, Insertable, Kysely, Selectable, Transaction } from 'kysely';

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

export type ExecutorsTable = Stamped & {
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
  template_id: string;
  /** The template as it was when rented. */
  template_json: string;
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
  /** Last generation that the agent acknowledged. */
  acknowledged_generation: number;
  reboots_requested: number;
  reboots_acknowledged: number;
  ports_json: string;
  ssh_keys_json: string;
  source: string;
  client_version: string | null;
  created_by_api_key_id: string | null;
  is_favorite: Flag;
  removal_at: number | null;
  termination_hours: number | null;
  first_running_at: number | null;
  /** When the agent last reported this pod. */
  seen_at: number | null;
  delete_requested_at: number | null;
  /** Set once nothing of it is left on the node. */
  ended_at: number | null;
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
};

/** One claim per (account, route, key); see rentals/idempotency.ts. */
export type IdempotencyTable = {
  account_id: string;
  route: string;
  key: string;
  fingerprint: string;
  state: 'running' | 'finished';
  /** The process that holds a running claim; claims of dead processes are dropped at start. */
  boot_id: string;
  status: number | null;
  body: string | null;
  created_at: number;
};

export type MetaTable = { name: string; value: string };

export type Tables = {
  meta: MetaTable;
  accounts: AccountsTable;
  sessions: SessionsTable;
  api_keys: ApiKeysTable;
  ssh_keys: SshKeysTable;
  templates: TemplatesTable;
  providers: ProvidersTable;
  login_nonces: LoginNoncesTable;
  executors: ExecutorsTable;
  gpu_slots: GpuSlotsTable;
  pods: PodsTable;
  events: EventsTable;
  idempotency: IdempotencyTable;
};

/** What every store function takes first: the database, or the transaction it runs in. */
export type Db = Kysely<Tables> | Transaction<Tables>;
export type Database = Kysely<Tables>;

export type Account = Selectable<AccountsTable>;
export type ApiKey = Selectable<ApiKeysTable>;
export type SshKey = Selectable<SshKeysTable>;
export type Template = Selectable<TemplatesTable>;
export type Provider = Selectable<ProvidersTable>;
export type Executor = Selectable<ExecutorsTable>;
export type GpuSlot = Selectable<GpuSlotsTable>;
export type Pod = Selectable<PodsTable>;
export type EventRow = Selectable<EventsTable>;
export type NewEvent = Insertable<EventsTable>;
