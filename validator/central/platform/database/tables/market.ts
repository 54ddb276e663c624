/** Tables of pods and of what renters store besides: templates, bookmarks, requests, feedback. */
import type { Flag, Stamped } from './platform.ts';

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
  state: 'pending' | 'fulfilled' | 'cancelled';
  /** The node that was added for it; set exactly while it is fulfilled. */
  fulfilled_executor_id: string | null;
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

export type MarketTables = {
  pods: PodsTable;
  templates: TemplatesTable;
  bookmarks: BookmarksTable;
  machine_requests: MachineRequestsTable;
  feedback: FeedbackTable;
  support_channels: SupportChannelsTable;
};
