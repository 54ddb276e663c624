/** Tables of providers, their executors, and the validators that check them. */
import type { Generated } from 'kysely';
import type { Flag, Stamped } from './platform.ts';

export type ProvidersTable = Stamped & {
  id: string;
  hotkey: string;
  coldkey: string | null;
  email: string | null;
  /** Argon2id; null until one was set. */
  password_hash: string | null;
  /** The provider on the chat platform; unique. */
  chat_user_id: string | null;
  chat_username: string | null;
  opted_in: Flag;
  banned_at: number | null;
};

/** GPU types whose machine requests a provider wants to hear of. */
export type ProviderSubscriptionsTable = { provider_id: string; gpu_class: string };

/** Long-lived credentials of the portal; a revoked one is deleted. */
export type ProviderTokensTable = {
  id: string;
  provider_id: string;
  name: string;
  /** SHA-256 hex. */
  token_hash: string;
  /** Its last characters, for the masked display. */
  suffix: string;
  created_at: number;
  expires_at: number | null;
  last_used_at: number | null;
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
    /** When its provider last changed type or count; null: never. */
    offer_changed_at: Generated<number | null>;
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
    /** The notice that is open or under way, as it is shown (executors/notice-period.ts); null: none. */
    notice_json: string | null;
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

export type NoticesTable = Stamped & {
  id: string;
  executor_id: string;
  start_at: number;
  /** As the provider wrote it, with its offset. */
  start_text: string;
  /** Of a maintenance; null: the node goes for good. */
  minutes: number | null;
  permanent: Flag;
  reason: string | null;
  state: 'open' | 'started' | 'done' | 'cancelled';
};

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

/** One row for each validator. */
export type SetWeightsTable = {
  validator_hotkey: string;
  /** As it was posted. */
  payload_json: string;
  /** Microseconds since the epoch, as the validator says. */
  updated_at_micros: number;
  received_at: number;
};

/** Each hotkey has one account at most, each account one hotkey. */
export type ValidatorAccountsTable = { hotkey: string; account_id: string; proven_at: number };

export type ExecutorTables = {
  providers: ProvidersTable;
  provider_subscriptions: ProviderSubscriptionsTable;
  provider_tokens: ProviderTokensTable;
  login_nonces: LoginNoncesTable;
  executors: ExecutorsTable;
  gpu_slots: GpuSlotsTable;
  pull_speeds: PullSpeedsTable;
  image_sizes: ImageSizesTable;
  notices: NoticesTable;
  sync_turns: SyncTurnsTable;
  set_weights: SetWeightsTable;
  validator_accounts: ValidatorAccountsTable;
};
