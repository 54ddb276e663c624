/** Tables of pods and what is told and said about them. */
import type { Generated } from 'kysely';
import type { Flag, Stamped } from './columns.ts';

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
  /** What was held for it when it was rented (ledger/hold.service.ts), whatever became of that. */
  hold_id: string | null;
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
  termination_hours: number | null;
  max_spend_uusd: number | null;
  idle_shutdown_minutes: number | null;
  /** What was before does not count as idle: when the minutes were set anew, the pod went on, or was used after it was unused; null: its start. */
  idle_from: number | null;
  /** When it stops for want of use as things stand; null: it is in use, or that is not known. */
  idle_stop_at: number | null;
  /** Up to when it was seen unused. */
  idle_until: number | null;
  /** Asked for with the rental; kept for the renter. */
  enable_volume_encryption: Flag;
  first_running_at: number | null;
  /** When it will probably be ready; null when nobody can tell. Means nothing once it has run. */
  ready_expected_at: number | null;
  /** What that rests on (executors/launch-estimate.ts). */
  eta_basis: string | null;
  /** When the agent last reported this pod. */
  seen_at: number | null;
  /** When its agent last said that it runs. */
  healthy_at: number | null;
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

export type PodTables = {
  pods: PodsTable;
  events: EventsTable;
  stream_tickets: StreamTicketsTable;
  feedback: FeedbackTable;
  support_channels: SupportChannelsTable;
  sync_turns: SyncTurnsTable;
};
