/**
 * Every field of the responses that may be null or absent, with its reason. All other fields are always present and
 * never null, because strict clients parse whole answers. `npm run docs` writes this table into the central API's
 * ROUTES.md.
 */

export type NullableFields = {
  /** Models of the OpenAPI documents that have the fields, or `METHOD /path` of an answer without a model. */
  of: readonly string[];
  /** Names of the fields; empty for the answer itself. */
  fields: readonly string[];
  /** When the fields are null or absent. */
  reason: string;
};

/** Models of a pod's row. */
const PODS = [
  ...['Pod', 'PodListItemResponse', 'PodDetailResponse', 'PodDeletedResponse', 'PodTombstone'],
  ...['RentExecutorResponse', 'SshKeysAddedResponse'],
];
const OPERATIONS = ['BackupLog', 'RestoreLogResponse'];
const WEBHOOKS = ['Webhook', 'WebhookWithSecret'];
const TOKENS = ['ProviderToken', 'NewProviderToken'];
const REASONS = ['PortalNode', 'Verification'];
const DIGESTS = ['GET /updater/digest', 'GET /watchtower/digest'];
const WEIGHTS = ['GET /latest-set-weights', 'GET /validator/{validator_hotkey}/latest-set-weights'];

function row(of: string | readonly string[], fields: string, reason: string): NullableFields {
  const models = typeof of === 'string' ? [of] : of;
  return { of: models, fields: fields.split(' ').filter((name) => name !== ''), reason };
}

const NODES: readonly NullableFields[] = [
  row(
    'ExecutorDetailResponse',
    'specs',
    'the list was requested with `view=summary`; the field is then absent',
  ),
  row('ExecutorDetailResponse', 'location', 'the country of the node is unknown'),
  row(
    ['ExecutorDetailResponse', 'PortalNode', 'NodeLocation'],
    'location_check',
    'the provider entered no place',
  ),
  row(
    'ExplainedExecutorList',
    'without_location',
    'the list is not empty, or the query has no filter by place',
  ),
  row('GpuHistory', 'uuid', 'the caller does not rent the card'),
  row(
    'ExecutorLocation',
    'region region_name city zip lat lon timezone',
    'the provider has not entered this part of the place',
  ),
  row('ExecutorDetailResponse', 'min_gpu_count_for_rental', 'only the whole node can be rented'),
  row(
    'ExecutorDetailResponse',
    'driver_version max_cuda_version',
    'the driver did not report a version',
  ),
  row(
    'ExecutorDetailResponse',
    'effective_upload_speed_mbps effective_download_speed_mbps',
    'no validator has measured the network speed yet',
  ),
  row(
    ['ExecutorDetailResponse', 'ReliabilityResponse'],
    'reliability_score',
    'the node was observed for less than a day',
  ),
  row('ReliabilityResponse', 'availability', 'no validator has observed the node yet'),
  row(
    'ExecutorDetailResponse',
    'uptime_in_minutes',
    'the node has not passed its checks yet, or the last check could not reach the node',
  ),
  row(
    'ExecutorDetailResponse',
    'validator_hotkey last_checked_at',
    'no validator has checked the node yet',
  ),
  row('ExecutorDetailResponse', 'ncu_profiling_enabled p2p', 'always null: nothing measures this'),
  row(
    'ExecutorDetailResponse',
    'pending_price_per_hour price_change_effective_date',
    'always null: price changes apply to new rentals at once',
  ),
  row(
    'ExecutorDetailResponse',
    'is_bookmarked',
    'the request has no credential; the field is then absent',
  ),
  row(
    'ExecutorDetailResponse',
    'machine_request_id',
    'no machine request of the caller was fulfilled with the node; absent if the request has no credential',
  ),
  row(
    'ExecutorDetailResponse',
    'notice_period',
    'the provider has announced no maintenance or removal',
  ),
  row(
    'ExecutorDetailResponse',
    'nvlink interconnect',
    'the agent did not report the connections between the cards',
  ),
  row('ExecutorSpecs', 'gpu.cuda_driver', 'the driver did not report a version'),
  row('ExecutorSpecs', 'gpu.details[].uuid', 'the caller does not rent the card'),
  row(
    'ExecutorSpecs',
    'gpu.details[].power_limit gpu.details[].graphics_speed gpu.details[].memory_speed gpu.details[].pcie gpu.details[].gpu_utilization gpu.details[].memory_utilization cpu.utilization',
    'the host does not report this value',
  ),
  row(
    'ExecutorSpecs',
    'gpu.details[].pcie_speed docker.container_id md5_checksums gpu_processes available_port_maps location disk_health interconnect.p2p',
    'always null: nothing measures this; the members exist for older clients',
  ),
  row(
    'ExecutorSpecs',
    'network.upload_speed network.download_speed',
    'no validator has measured the network speed yet',
  ),
  row(
    'ExecutorSpecs',
    'interconnect',
    'the agent did not report the connections between the cards',
  ),
  row('ExecutorSpecs', 'interconnect.nvlink_links', 'no two cards are connected by NVLink'),
  row('ExecutorSpecs', 'interconnect.pcie_class', 'NVLink connects all cards'),
  row('NoticePeriod', 'period_in_minute', 'the notice announces a permanent removal'),
  row('NoticePeriod', 'reason', 'the provider stated no reason'),
  row('DefaultDockerImage', 'docker_image_size', 'the template does not state the size'),
  row('DefaultDockerImage', 'docker_image_digest', 'the template names a tag instead of a digest'),
  row('DeploymentEstimateResponse', 'warning_message', 'there is no warning'),
  row(
    'DeploymentEstimateResponse',
    'docker_image_size',
    'the template does not state the size, and no node has pulled the image yet',
  ),
  row('HardwareUtilization', 'network.upload_speed', 'always null: uploads are not measured'),
  row('HardwareUtilization', 'network.download_speed', 'the node has not pulled an image yet'),
  row(
    'GpuSample',
    'temperature_c power_draw_w power_limit_w graphics_speed memory_speed pcie ecc_errors processes',
    'the card does not report this value',
  ),
  row('Bookmark', 'executor', 'the node was removed, or has not been checked yet'),
];

const POD_ROWS: readonly NullableFields[] = [
  row(PODS, 'ssh_connect_cmd', 'the pod does not accept SSH logins now'),
  row(
    PODS,
    'ssh_host_key known_hosts',
    'the pod has not been launched yet, or has its own SSH server',
  ),
  row(PODS, 'removal_scheduled_at termination_hours', 'no removal is scheduled'),
  row(
    PODS,
    'jupyter_installation_status jupyter_url jupyter_error',
    'no notebook server was requested, or the server is not ready. `jupyter_error` is null without a failure; `jupyter_url` is null for an API key without the scope `rent`',
  ),
  row(PODS, 'template_id', 'the pod was rented with a Dockerfile'),
  row(PODS, 'volume', 'the pod has no volume'),
  row(PODS, 'notice_period', 'the provider has announced no maintenance or removal of the node'),
  row(PODS, 'client_version', 'the client did not send its version'),
  row(PODS, 'created_by_api_key_id', 'a session rented the pod'),
  row(PODS, 'phase', 'the pod has ended or failed'),
  row(PODS, 'estimated_ready_seconds eta_basis', 'the pod is not being created'),
  row(
    PODS,
    'workspace_id cluster_id cluster_name',
    'always null: the marketplace has neither workspaces nor clusters',
  ),
  row(PODS, 'volume_encryption_status', 'always null: volumes are not encrypted'),
  row(PODS, 'reason_code message', 'the pod has no failure or stop to report'),
  row(PODS, 'max_spend_usd idle_shutdown_minutes', 'the pod has no such limit'),
  row('PodExecutor', 'validator_hotkey', 'no validator has checked the node yet'),
  row('PodExecutor', 'location', 'the country of the node is unknown'),
  row(
    'PodExecutor',
    'uptime_in_minutes',
    'the node has not passed its checks yet, or the last check could not reach the node',
  ),
  row('PodExecutor', 'disk_health_ok', 'the host does not report the health of its disk'),
  row('PodReport', 'finding', 'the validator has found no shortfall'),
  row('PodReport', 'evidence', 'no validator has examined the report yet'),
  row('PodReport', 'ended_at', 'the report has not ended'),
  row(
    'POST /validator/{validator_hotkey}/pod-reports',
    '[].offer.disk_bytes',
    'the disk space of the pod is not limited',
  ),
  row(
    'POST /validator/{validator_hotkey}/pod-reports',
    '[].offer.gpu_type',
    'the offer of the node has changed since the rental',
  ),
  row('PodDetailResponse', 'last_event', 'the pod has no event yet'),
  row('PodDetailResponse', 'backup_config', 'the pod has no backup schedule'),
  row('PodDetailResponse', 'deleted_at', 'the pod exists; the field is then absent'),
  row(
    'RentBySpecResponse',
    'pod_id id pod template_id',
    'the request was a dry run, which rents nothing; `template_id` is also null for a rental with a Dockerfile',
  ),
  row(
    'RentBySpecResponse',
    'funnel nearest',
    'the request has no `explain`; the fields are then absent',
  ),
  row('PodChatChannelResponse', 'channel_url', 'the channel has no address'),
  row(
    'AccountEvent',
    'pod_id pod_name from_status to_status',
    'the event is about the account, or the status has not changed',
  ),
  row(
    'AccountEvent',
    'actor.api_key_id actor.api_key_name request_id',
    'the actor used no API key, or no request caused the event',
  ),
  row(
    'AccountEvent',
    'reason detail error event.detail event.error',
    'the event has no such text; errors only exist for failures',
  ),
];

const RESOURCES: readonly NullableFields[] = [
  row('TemplateResponse', 'user_id', 'the template is official'),
  row('TemplateResponse', 'docker_image_size', 'the owner did not state the size'),
  row(
    'TemplateResponse',
    'supports_docker',
    'always null: the node determines whether containers can run inside the pod',
  ),
  row('TemplateResponse', 'docker_credential_id', 'the image is public'),
  row('DockerCredential', 'name', 'the request had no such value'),
  row('Volume', 'attached_pod_id', 'no pod has the volume'),
  row('Volume', 'executor_id', 'the newest data is saved, so no node has a copy'),
  row(
    'Volume',
    'last_metrics_update last_saved_at',
    'the volume was not measured or not saved yet',
  ),
  row(
    'Volume',
    'progress message',
    'no restore or save is in progress; `message` is also null without a problem',
  ),
  row(
    'VolumeStats',
    'attached_pod_id last_metrics_update',
    'no pod has the volume, or the volume was not measured yet',
  ),
  row(
    'MachineRequest',
    'gpu_count hourly_budget country min_vram_gb notes',
    'the request does not state this value',
  ),
  row('MachineRequest', 'fulfilled_executor_id', 'no provider has fulfilled the request'),
  row('BackupConfig', 'next_run_at', 'the schedule is not active'),
  row(
    OPERATIONS,
    'started_at completed_at last_heartbeat_at stage',
    'the operation has not begun, or has not ended; `stage` is null after the end',
  ),
  row(OPERATIONS, 'error_message error_code status_message', 'the operation has not failed'),
  row(
    OPERATIONS,
    'total_files processed_files total_bytes processed_bytes elapsed_seconds throughput_bytes_per_second estimated_remaining_seconds',
    'the node has not reported this value yet',
  ),
  row('BackupLog', 'backup_config_id', 'the backup was not started by a schedule'),
  row('BackupLog', 'name description', 'the request had no such value'),
  row('BackupLog', 'backup_volume_id', 'always null: backups are stored in repositories'),
  row(
    'BackupLog',
    'deletion_state physical_cleanup_at expires_at',
    'the backup is not deleted; `expires_at` is null for a backup without an expiry time',
  ),
  row('BackupLog', 'sha256 quality', 'the backup is not complete'),
  row(
    'BackupLog',
    'changed_files changed_files_total',
    'the backup is not complete, or its node cannot detect changed files',
  ),
  row(
    'BackupLog',
    'verify_status verified_at verify_error verify_error_code verified_files verified_bytes',
    'no drill has run; the errors are also null if no drill has failed',
  ),
  row('RestoreLogResponse', 'logs', 'the node has not written a log'),
  row(
    'RestoreLogResponse',
    'lost_files lost_files_total',
    'the restore was requested without `salvage`, or has not read the backup yet',
  ),
  row('RestoreLogResponse', 'restarted_pod', 'the node has not fetched the files yet'),
  row('GET /backup-configs/pod/{pod_id}', '', 'the pod has no backup schedule'),
];

const ACCOUNTS: readonly NullableFields[] = [
  row('User', 'runs_out_at', 'no pod is charged now, so the money does not run out'),
  row('User', 'stripe_customer_id', 'no payment method was stored'),
  row('User', 'stripe_connect_account_id', 'the onboarding has not begun'),
  row('User', 'discord_id', 'no chat account is linked'),
  row('User', 'avatar_url company_name default_template_id', 'the owner has set no such value'),
  row('User', 'validator_hotkey', 'the account is not linked to a validator'),
  row('User', 'workspace', 'always null: the marketplace has no workspaces'),
  row('UserPreference', 'default_template_id default_template', 'no such value is set'),
  row('PayoutAccount', 'stripe_connect_account_id', 'the onboarding has not begun'),
  row('PayoutAccount', 'onboarding_url', 'this request did not begin the onboarding'),
  row(
    'ChatOAuthAuthorizationUrlResponse',
    'authorization_url',
    'the marketplace has no chat platform',
  ),
  row('ChatOAuthCallbackResponse', 'discord_id discord_username', 'no chat account is linked'),
  row(
    'GET /users/me/chat/callback',
    '',
    'the user declined, or the marketplace has no chat platform',
  ),
  row('GET /users/me/auto-top-up', '', 'the auto top-up was never configured'),
  row('AutoTopUp', 'monthly_limit_usd payment_method_id', 'no such value is set'),
  row(
    'AutoTopUp',
    'last_attempt_at last_error',
    'no charge was attempted; `last_error` is also null after a success',
  ),
  row(
    'LowBalanceThreshold',
    'threshold_usd runway_minutes',
    'the account has not set a threshold, so the default applies',
  ),
  row(['TransferHistoryDto', 'TransferResponse'], 'note', 'the request had no such value'),
  row('AlphaQuote', 'converted rate', 'the rate of the subnet is unknown'),
  row('LedgerPage', 'next_after next_before', 'this is the last page, or the order is the other'),
  row('PresignedUpload', 'public_url', 'the object is not public'),
  row('ApiKey', 'key', 'the caller has no session, or `CENTRAL_API_KEYS_RETRIEVABLE` is `false`'),
  row('Session', 'client', 'the log-in had no header User-Agent'),
  row('ApiKey', 'expires_at last_used', 'the key never expires, or was never used'),
  row('ApiKey', 'scopes daily_budget_usd max_budget_usd', 'the key does not have this limit'),
  row('ApiKey', 'workspace_id', 'always null: the marketplace has no workspaces'),
  row(
    WEBHOOKS,
    'disabled_reason failing_since next_attempt_at',
    'the webhook is not disabled, its last delivery succeeded, or no event waits',
  ),
  row(
    'WebhookDelivery',
    'status error',
    '`status`: the receiver did not answer; `error`: the delivery succeeded',
  ),
];

const OPERATORS: readonly NullableFields[] = [
  row('OperatorAccount', 'pods[].ended_at', 'the pod has not ended'),
  row('FleetPage', 'nodes[].slots[].pod_id', 'the GPU is free'),
  row(
    'FleetPage',
    'nodes[].validator_hotkey nodes[].checked_at',
    'no validator has judged the node yet',
  ),
  row('FleetPage', 'nodes[].last_seen_at', 'the agent has never answered'),
  row(
    'OperatorProviderPage',
    'providers[].coldkey providers[].email',
    'no coldkey is known; the provider has set no address',
  ),
  row(
    'OperatorProviderPage',
    'providers[].banned_at providers[].ban_reason',
    'the provider is not banned',
  ),
  row('Queues', 'queues[].oldest_due_at', 'no row is due'),
  row(['DriftList', 'CyclePage', 'CycleVerdicts'], 'next', 'this is the last page'),
  row(['EvidencePage', 'EpochPage', 'EpochWeights'], 'next', 'this is the last page'),
  row('OperatorClock', 'reason peer_time', 'the clock is trusted, or no peer differs'),
  row('LedgerProof', 'operator started_at', 'no proof was requested yet'),
  row('UnknownPod', 'remove_requested_at', 'no operator has requested the removal'),
  row(
    'LedgerProof',
    'finished_at holds transfers accounts open_holds balance_hash',
    'the newest proof has not ended, or has failed',
  ),
  row('LedgerProof', 'error', 'the newest proof has not failed'),
  row(
    'ValidatorStatus',
    'cycle cycle_ended_at epoch epoch_computed_at',
    'the validator has closed no cycle, or computed no epoch, yet',
  ),
  row('ValidatorStatus', 'oldest_message_at', 'no message waits'),
  row('EvidencePage', 'first_seq last_seq', 'the chain has no trusted head'),
  row('SignedEvidence', 'header', 'a validator of an older version signed the document'),
  row('SignedEvidence', 'document', 'the validator has dropped or lost the document'),
  row('SignedEvidence', 'dropped_at', 'the document was not dropped'),
  row('EpochPage', 'epochs[].previous', 'the epoch begins a chain'),
  row('SignedEpoch', 'previous', 'the epoch begins a chain'),
  row(
    'SignedEpoch',
    'validator signature',
    'an early version of the validator stored the epoch, or the epoch was damaged',
  ),
  row(
    'EpochWeights',
    'previous_epoch weights[].previous_weight',
    'the previous epoch is no longer stored',
  ),
  row('EpochWeights', 'weights[].hotkey', 'the epoch has no hotkey for the uid'),
  row('WeightExplanation', 'uid', 'the hotkey is not registered'),
  row('ReleaseList', 'releases[].previous_digest', 'the release is the first'),
  row('ReleaseList', 'releases[].rollback_digest', 'the release was not rolled back'),
];

const PROVIDERS: readonly NullableFields[] = [
  row(
    'Miner',
    'email discord_id',
    'the provider has set no address, or has linked no chat account',
  ),
  row(
    'ProviderProfile',
    'miner_coldkey email discord_id',
    'no coldkey is known, no address is set, or no chat account is linked',
  ),
  row(
    'GET /auth/me/discord/callback',
    'data',
    'the provider declined, or the marketplace has no chat platform',
  ),
  row(TOKENS, 'expires_at last_used', 'the token never expires, or was never used'),
  row('NodePod', 'removal_scheduled_at', 'no removal is scheduled'),
  row('PortalNode', 'min_gpu_count_for_rental', 'only the whole node can be rented'),
  row('PortalNode', 'notice_period', 'the provider has announced no maintenance or removal'),
  row('PortalNode', 'validator_hotkey', 'no validator has checked the node yet'),
  row(
    REASONS,
    'blocking_reasons[].fix_command blocking_reasons[].verify_command blocking_reasons[].requires',
    'no command can fix or verify the problem, or the command has no requirement',
  ),
  row('PortalNode', 'location', 'the country of the node is unknown'),
  row('NodeLocation', 'entered updated_at', 'the provider entered no place'),
  row(REASONS, 'blocking_reasons[].docs_url', 'the operator configured no documentation'),
  row('Verification', 'checked_at', 'no validator has checked the node yet'),
  row(
    'Verification',
    'checks[].fix_command checks[].verify_command',
    'the node passed the check, or no command can fix the problem',
  ),
  row('Verification', 'score', 'always null: verdicts have no score'),
  row(
    'PortalRequest',
    'gpu_count hourly_budget country notes fulfilled_executor_id',
    'the request does not state this value, or is not fulfilled',
  ),
  row(
    'BillingRow',
    'pod_id gross_usd fee_usd net_usd unposted',
    'the row belongs to another provider',
  ),
];

const VALIDATORS: readonly NullableFields[] = [
  row('ExecutorHealthCheckResponse', 'error details reason_code', 'the node passed its checks'),
  row(WEIGHTS, 'current_block', 'the validator did not report the block'),
  row(
    DIGESTS,
    'manifest.previousDigest manifest.rollbackTo',
    'the release is the first, or is not a rollback',
  ),
  row(DIGESTS, 'keySets', 'the validator has published no key set'),
  row(
    'POST /validator/{validator_hotkey}/executors',
    '[].uptime_in_minutes [].pod_ids [].price_uusd [].collateral_deposited [].provider_banned [].paid_fees_uusd [].extra_incentive_eligible [].maintenance_ms',
    'the node has not passed its checks yet (`uptime_in_minutes`); early versions of the central API omit the other members',
  ),
];

export const NULLABLE_FIELDS: readonly NullableFields[] = [
  ...NODES,
  ...POD_ROWS,
  ...RESOURCES,
  ...ACCOUNTS,
  ...OPERATORS,
  ...PROVIDERS,
  ...VALIDATORS,
];

/** The fields of a row in the notation of `placesOf`. */
export function keysOf({ of, fields }: NullableFields): string[] {
  if (fields.length === 0) return [...of];
  return of.flatMap((model) =>
    fields.map((field) => (field.startsWith('[]') ? `${model}${field}` : `${model}.${field}`)),
  );
}
