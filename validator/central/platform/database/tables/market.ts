/** Tables of pods, and of templates, bookmarks, machine requests and feedback of renters. */
import type { Flag, Stamped } from './platform.ts';

export type PodsTable = Stamped & {
  id: string;
  account_id: string;
  executor_id: string;
  /** Id of the template; empty for a pod that was rented with a Dockerfile. */
  template_id: string;
  /** Copy of the template at the time of the rental or of the last change. */
  template_json: string;
  /** `updated_at` of the template used in the last change, successful or not; null before the first change. */
  template_tried_at: number | null;
  pod_name: string;
  gpu_count: number;
  price_uusd_per_gpu_hour: number;
  /** Id of the rental's hold. It remains after the hold was posted or voided. */
  hold_id: string | null;
  state: string;
  phase: string;
  reason_code: string | null;
  message: string;
  /** Number of the spec version that the agent must run. The row itself is the outbox of the spec. */
  generation: number;
  spec_json: string;
  /** Key of the image that was rented; null for an image that is built on the node. */
  image_key: string | null;
  /** State to which the pod returns if the node reverts a change; set during a change. */
  previous_json: string | null;
  /** Last generation that the agent acknowledged. */
  acknowledged_generation: number;
  reboots_requested: number;
  reboots_acknowledged: number;
  ports_json: string;
  ssh_host_key: string | null;
  ssh_keys_json: string;
  source: string;
  client_version: string | null;
  created_by_api_key_id: string | null;
  /** Registry login for the image. */
  docker_credential_id: string | null;
  is_favorite: Flag;
  removal_at: number | null;
  termination_hours: number | null;
  max_spend_uusd: number | null;
  idle_shutdown_minutes: number | null;
  /**
   * Earliest start of the idle time: the last restart, use, or change of the minutes. If null, the start of the pod.
   */
  idle_from: number | null;
  /** Expected idle shutdown; null if the pod is in use or its use is unknown. */
  idle_stop_at: number | null;
  /** Time up to which the pod was measured as unused. */
  idle_until: number | null;
  /** Requested with the rental. The value is stored and has no effect. */
  enable_volume_encryption: Flag;
  first_running_at: number | null;
  /** Time at which the pod is expected to be ready; null if unknown. Not used after the pod has run once. */
  ready_expected_at: number | null;
  /** Source of the estimate in `ready_expected_at`. */
  eta_basis: string | null;
  /**
   * Time at which the present launch began; null for a pod that was rented before this column existed. Not used after
   * the pod has run once.
   */
  launch_began_at: number | null;
  /** Time at which the launch fails if the pod has not run. */
  launch_until: number | null;
  /** Bytes of the image that had arrived or were unpacked at `launch_bytes_at`. */
  launch_bytes: number;
  /** Time of the last progress of the image; null once the image is complete. */
  launch_bytes_at: number | null;
  /** Time at which the agent last reported the pod. */
  seen_at: number | null;
  /** Time at which the agent last reported the pod as running. */
  healthy_at: number | null;
  delete_requested_at: number | null;
  /** Time at which the pod ended, which is set once the node has removed everything of the pod. */
  ended_at: number | null;
  /** Requested with the rental. */
  enable_jupyter: Flag;
  /** Port for a notebook server inside the pod; null if no notebook server is requested. */
  jupyter_port: number | null;
  /** Number of requests for a notebook server that were sent to the node. Each request has a different token. */
  jupyter_requests: number;
  /** Null until the result is known. */
  jupyter_status: 'SUCCESS' | 'FAILED' | null;
  jupyter_error: string | null;
  /** URL path of the notebook server. */
  jupyter_path: string | null;
};

export type TemplatesTable = Stamped & {
  id: string;
  /** Owner; null for an official template. */
  account_id: string | null;
  name: string;
  description: string;
  docker_image: string;
  docker_image_tag: string;
  docker_image_digest: string;
  docker_image_size: number | null;
  /** Registry login of the template's owner. */
  docker_credential_id: string | null;
  category: string;
  status: string;
  is_private: Flag;
  one_time_template: Flag;
  is_temporary: Flag;
  /** Time at which a one-time or temporary template was rented. Such a template cannot be rented again. */
  used_at: number | null;
  internal_ports_json: string;
  environment_json: string;
  volumes_json: string;
  tags_json: string;
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

/** Requests for nodes that no provider offers yet. */
export type MachineRequestsTable = Stamped & {
  id: string;
  account_id: string;
  /** Short GPU type or full GPU name. */
  gpu_class: string;
  gpu_count: number | null;
  /** Budget for all GPUs together. */
  budget_uusd_per_hour: number | null;
  /** Country code or name. */
  country: string | null;
  /** Memory per GPU, in GB. */
  min_vram_gb: number | null;
  notes: string | null;
  /** 1 if the renter receives a mail when the request is fulfilled. */
  notify: Flag;
  state: 'pending' | 'fulfilled' | 'cancelled';
  /** Node that fulfils the request; null if and only if the request is not fulfilled. */
  fulfilled_executor_id: string | null;
};

/** Feedback of renters on their pods, which may have ended. */
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

/** Reports of renters that a pod is not what was offered. A pod has at most one report that has not ended. */
export type PodReportsTable = Stamped & {
  id: string;
  pod_id: string;
  account_id: string;
  executor_id: string;
  reason: string;
  /** Text of the renter; null for none, and after the account was deleted. */
  description: string | null;
  /** 1 if the validator may enter the pod. */
  consent: Flag;
  state: 'open' | 'examining' | 'confirmed' | 'not_confirmed' | 'expired';
  /** Validator that examines the report; null before the first claim. */
  validator_hotkey: string | null;
  /** Time at which another validator may claim the report. */
  claimed_until: number | null;
  /** Number of examinations that could not be made. */
  attempts: number;
  refund_uusd: number;
  /** Signed document of the validator; null before the first outcome. */
  evidence_json: string | null;
  ended_at: number | null;
};

/** Support channels; a pod has at most one. */
export type SupportChannelsTable = {
  pod_id: string;
  id: string;
  account_id: string;
  /** Id of the renter's user on the chat platform; null after the account was deleted. */
  chat_user_id: string | null;
  name: string;
  topic: string | null;
  /** The renter's first message. */
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
  pod_reports: PodReportsTable;
};
