/** Tables of providers, their executors, and the validators that check them. */
import type { Generated } from 'kysely';
import type { Flag, Stamped } from './platform.ts';

export type ProvidersTable = Stamped & {
  id: string;
  hotkey: string;
  coldkey: string | null;
  email: string | null;
  /** Argon2id; null until a password was set. */
  password_hash: string | null;
  /** Id of the provider's user on the chat platform; unique. */
  chat_user_id: string | null;
  chat_username: string | null;
  opted_in: Flag;
  banned_at: number | null;
};

/** GPU types whose machine requests a provider subscribes to. */
export type ProviderSubscriptionsTable = { provider_id: string; gpu_class: string };

/** Long-lived credentials for the portal. A credential is deleted when it is revoked. */
export type ProviderTokensTable = {
  id: string;
  provider_id: string;
  name: string;
  /** SHA-256 hex. */
  token_hash: string;
  /** Last characters of the token, which the masked token shows. */
  suffix: string;
  created_at: number;
  expires_at: number | null;
  last_used_at: number | null;
};

/** Messages of signed portal logins that were used, stored so that they cannot be used again. */
export type LoginNoncesTable = { hotkey: string; message: string; expires_at: number };

export type ExecutorsTable = Stamped &
  MeasuredFigures &
  LineFigures & {
    id: string;
    provider_id: string;
    ip_address: string;
    port: number;
    /** Value stated by the provider. */
    gpu_type: string;
    gpu_count: number;
    /** Time at which the provider last changed GPU type or count; null if never. */
    offer_changed_at: Generated<number | null>;
    price_uusd_per_gpu_hour: number;
    min_gpu_count: number | null;
    collateral_deposited: Flag;
    lat: number | null;
    lon: number | null;
    /** Place that the market shows; null if none was entered, or if evidence contradicts it. */
    location_json: string | null;
    location_check: Generated<LocationCheck | null>;
    state: 'queued' | 'verified' | 'failed' | 'removed';
    paused: Flag;
    /** Validator that reported the last verdict; null before the first verdict. */
    validator_hotkey: string | null;
    verdict_at: number | null;
    checks_json: string;
    /** Measured full GPU name; null before the first verified verdict. */
    machine_name: string | null;
    driver_version: string | null;
    /** Inventory of the last verdict that contained one. */
    inventory_json: string | null;
    simulated: Flag;
    first_verified_at: number | null;
    /** Reliability in thousandths; null while there are too few observations. */
    reliability_permille: Generated<number | null>;
    /** Time of the last report that counts for the reliability. */
    observed_at: Generated<number | null>;
    /**
     * Start of the time in which every report that counts for the reliability reached the agent; null if the last did
     * not.
     */
    reachable_since: Generated<number | null>;
    /** Time at which the agent last responded; up to half a minute old. */
    last_seen_at: number | null;
    removed_at: number | null;
    /** Number of GPU slots, and number of GPU slots without a pod. */
    slots_total: number;
    slots_free: number;
    /**
     * Number of pods on the node that wait for a decision of an operator. The node cannot be rented while the number is
     * above 0.
     */
    unknown_pods: Generated<number>;
    /** The open or current notice, in the form that responses contain; null if there is none. */
    notice_json: string | null;
    /** Increases with every change that the market shows; set by a trigger (0009-market-revisions.ts). */
    revision: Generated<number>;
  };

/**
 * Pods that nodes run and that the database does not have, or has in an older generation. An operator decides about
 * each.
 */
export type UnknownPodsTable = {
  executor_id: string;
  pod_id: string;
  /** `missing`: the database has no such pod on the node; `newer`: the database has an older generation of the pod. */
  kind: 'missing' | 'newer';
  /** Generation on the node. */
  generation: number;
  /** Image reference that the node reports. */
  image: string;
  gpu_count: number;
  /** Creation of the pod by the node's clock. */
  created_at: number;
  found_at: number;
  /** Time at which an operator requested the removal; null before. */
  remove_requested_at: number | null;
};

/** Result of comparing the place that the provider entered with the evidence; null if none was entered. */
export type LocationCheck = 'entered' | 'confirmed' | 'contradicted';

/** Places of nodes, with the evidence for or against them. */
export type NodePlacesTable = {
  executor_id: string;
  /** Place that the provider entered; null if only evidence is stored. */
  entered_json: string | null;
  /** Latest round-trip times by validator hotkey. */
  round_trip_json: string | null;
  evidence_json: string;
  updated_at: number;
};

/** Counters of one day (UTC, days since the epoch), from which the reliability of a node is computed. */
export type NodeDaysTable = {
  executor_id: string;
  day: number;
  observed_ms: number;
  reachable_ms: number;
  /** Time in which the node was reachable and at least one GPU was rented. */
  rented_ms: number;
  launches_succeeded: number;
  launches_failed: number;
  interruptions: number;
};

/** Deposits of nodes (by id) and of providers (by hotkey, for all nodes of the provider). */
export type CollateralDepositsTable = {
  subject: string;
  source: 'feed' | 'operator';
  note: string | null;
  created_at: number;
};

/**
 * Measured network speed in megabits per second, from the latest report that contained it; null before the first such
 * report.
 */
export type LineFigures = { download_mbps: number | null; upload_mbps: number | null };

/** Figures from `inventory_json`, for searches; null if not measured. */
export type MeasuredFigures = {
  /** Memory of the smallest card. */
  gpu_memory_mib: number | null;
  cpu_cores: number | null;
  memory_kib: number | null;
  disk_free_kib: number | null;
  ports_free: number | null;
  sysbox_runtime: Flag | null;
  /** 1 if the node can assign single GPUs to pods. */
  can_split: Flag | null;
  /** 1 if NVLink connects every pair of its cards. */
  nvlink: Flag | null;
};

/** One row per GPU of an executor; `pod_id` prevents two pods from renting the same GPU. */
export type GpuSlotsTable = {
  executor_id: string;
  idx: number;
  gpu_uuid: string;
  pod_id: string | null;
};

/** Measured pull speed of an executor. */
export type PullSpeedsTable = {
  executor_id: string;
  bytes_per_second: number;
  /** Number of pulls measured. */
  pulls: number;
  /**
   * End of the last measured pull, by the executor's clock. A pull that ended at or before this time is not counted
   * again.
   */
  last_finished_ms: number;
  updated_at: number;
};

/** Compressed sizes by `name:tag` or `name:tag@digest`. */
export type ImageSizesTable = {
  image: string;
  compressed_bytes: number;
  /** 0 if the size lacks layers that the node already had. */
  is_whole: Flag;
  updated_at: number;
};

export type NoticesTable = Stamped & {
  id: string;
  executor_id: string;
  start_at: number;
  /** Start time in the provider's words, with the time offset. */
  start_text: string;
  /** Duration of a maintenance; null if the node is removed for good. */
  minutes: number | null;
  permanent: Flag;
  reason: string | null;
  state: 'open' | 'started' | 'done' | 'cancelled';
};

/** Sync queue: executors with pods or volumes. An executor without both stays for a while. */
export type SyncTurnsTable = {
  executor_id: string;
  /** Time from which a process may sync the executor. */
  due_at: number;
  /** Number of consecutive syncs in which the agent did not respond. */
  failures: number;
  /**
   * 1 if a sync was requested since the last sync began. Such executors come first, and an executor that was woken
   * during a sync is due again as soon as that sync ends.
   */
  woken: Flag;
  /** Process that is syncing the executor; null if none is. */
  boot_id: string | null;
  /** End of the first sync that found neither pods nor volumes; null if the last sync found some. */
  empty_since: Generated<number | null>;
};

/** Progress of the survey of nodes outside the sync queue: a single row. */
export type NodeSurveyTable = {
  id: 1;
  /** Nodes with ids up to this one were claimed in this round; empty between two rounds. */
  after_id: string;
  /** Time from which the next round may begin. */
  due_at: number;
};

/** The last weights of each validator. */
export type SetWeightsTable = {
  validator_hotkey: string;
  /** The document that the validator posted. */
  payload_json: string;
  /** Microseconds since the epoch, as stated by the validator. */
  updated_at_micros: number;
  received_at: number;
};

/** Accounts of validators. A hotkey has at most one account, and an account at most one hotkey. */
export type ValidatorAccountsTable = { hotkey: string; account_id: string; proven_at: number };

export type ExecutorTables = {
  providers: ProvidersTable;
  provider_subscriptions: ProviderSubscriptionsTable;
  provider_tokens: ProviderTokensTable;
  login_nonces: LoginNoncesTable;
  executors: ExecutorsTable;
  node_places: NodePlacesTable;
  node_days: NodeDaysTable;
  collateral_deposits: CollateralDepositsTable;
  unknown_pods: UnknownPodsTable;
  gpu_slots: GpuSlotsTable;
  pull_speeds: PullSpeedsTable;
  image_sizes: ImageSizesTable;
  notices: NoticesTable;
  sync_turns: SyncTurnsTable;
  node_survey: NodeSurveyTable;
  set_weights: SetWeightsTable;
  validator_accounts: ValidatorAccountsTable;
};
