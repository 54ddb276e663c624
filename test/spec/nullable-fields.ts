/**
 * Every field of the responses that may be null or absent, with its reason. All other fields are always present and
 * never null, because strict clients parse whole answers. `npm run docs` writes this table into the central API's ROUTES.md.
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
    'absent with `view=summary`; a listed node has it otherwise',
  ),
  row('ExecutorDetailResponse', 'location', 'the country of the node is unknown'),
  row(
    ['ExecutorDetailResponse', 'PortalNode', 'NodeLocation'],
    'location_check',
    'the provider entered no place',
  ),
  row('ExplainedExecutorList', 'without_location', 'no filter by place left the list empty'),
  row('GpuHistory', 'uuid', 'the caller does not rent the card'),
  row(
    'ExecutorLocation',
    'region region_name city zip lat lon timezone',
    'the provider entered the country only, or a part of the place',
  ),
  row('ExecutorDetailResponse', 'min_gpu_count_for_rental', 'the node is rented whole only'),
  row(
    'ExecutorDetailResponse',
    'driver_version max_cuda_version',
    'the driver did not report a version',
  ),
  row(
    'ExecutorDetailResponse',
    'effective_upload_speed_mbps effective_download_speed_mbps',
    'no validator has measured the line yet',
  ),
  row(
    ['ExecutorDetailResponse', 'ReliabilityResponse'],
    'reliability_score',
    'the node was observed for less than a day',
  ),
  row('ReliabilityResponse', 'availability', 'nothing was observed yet'),
  row(
    'ExecutorDetailResponse',
    'uptime_in_minutes',
    'the node has not passed its checks yet, or the last check did not reach it',
  ),
  row('ExecutorDetailResponse', 'validator_hotkey', 'no validator has checked the node yet'),
  row('ExecutorDetailResponse', 'ncu_profiling_enabled p2p', 'always: not measured'),
  row(
    'ExecutorDetailResponse',
    'pending_price_per_hour price_change_effective_date',
    'always: price changes apply to new rentals at once',
  ),
  row('ExecutorDetailResponse', 'is_bookmarked', 'absent in requests without a credential'),
  row(
    'ExecutorDetailResponse',
    'machine_request_id',
    'no request of the caller has led to the node; absent without a credential',
  ),
  row('ExecutorDetailResponse', 'notice_period', 'nothing is announced'),
  row('ExecutorDetailResponse', 'nvlink interconnect', 'the connections of the cards are unknown'),
  row('ExecutorSpecs', 'gpu.cuda_driver', 'the driver did not report a version'),
  row('ExecutorSpecs', 'gpu.details[].uuid', 'the caller does not rent the card'),
  row(
    'ExecutorSpecs',
    'gpu.details[].power_limit gpu.details[].graphics_speed gpu.details[].memory_speed gpu.details[].pcie gpu.details[].gpu_utilization gpu.details[].memory_utilization cpu.utilization',
    'the host does not report the reading',
  ),
  row(
    'ExecutorSpecs',
    'gpu.details[].pcie_speed docker.container_id md5_checksums gpu_processes available_port_maps location disk_health interconnect.p2p',
    'always: not measured; the members exist for older clients',
  ),
  row(
    'ExecutorSpecs',
    'network.upload_speed network.download_speed',
    'no validator has measured the line yet',
  ),
  row('ExecutorSpecs', 'interconnect', 'the connections of the cards are unknown'),
  row('ExecutorSpecs', 'interconnect.nvlink_links', 'no two cards are connected by NVLink'),
  row('ExecutorSpecs', 'interconnect.pcie_class', 'NVLink connects all cards'),
  row('NoticePeriod', 'period_in_minute', 'the node is removed for good'),
  row('NoticePeriod', 'reason', 'the provider gave none'),
  row('DefaultDockerImage', 'docker_image_size', 'the template does not state it'),
  row('DefaultDockerImage', 'docker_image_digest', 'the template names a tag only'),
  row('DeploymentEstimateResponse', 'warning_message', 'there is nothing to warn of'),
  row(
    'DeploymentEstimateResponse',
    'docker_image_size',
    'the template does not state it, and no node has pulled the image yet',
  ),
  row('HardwareUtilization', 'network.upload_speed', 'always: uploads are not measured'),
  row('HardwareUtilization', 'network.download_speed', 'no image was pulled yet'),
  row(
    'GpuSample',
    'temperature_c power_draw_w power_limit_w graphics_speed memory_speed pcie ecc_errors processes',
    'the card does not report the reading',
  ),
  row('Bookmark', 'executor', 'the node was removed, or has not been checked yet'),
];

const POD_ROWS: readonly NullableFields[] = [
  row(PODS, 'ssh_connect_cmd', 'the pod does not accept logins yet, or any more'),
  row(
    PODS,
    'ssh_host_key known_hosts',
    'the pod has not been launched yet, or runs its own SSH server',
  ),
  row(PODS, 'removal_scheduled_at termination_hours', 'no removal is scheduled'),
  row(
    PODS,
    'jupyter_installation_status jupyter_url jupyter_error',
    'no notebook server was requested, or it is not ready; the error is null without a failure',
  ),
  row(PODS, 'template_id', 'the pod was rented with a Dockerfile'),
  row(PODS, 'volume', 'the pod has no volume'),
  row(PODS, 'notice_period', 'nothing is announced for the node'),
  row(PODS, 'client_version', 'the client did not send its version'),
  row(PODS, 'created_by_api_key_id', 'a session rented the pod'),
  row(PODS, 'phase', 'the pod has ended or failed'),
  row(PODS, 'estimated_ready_seconds eta_basis', 'the pod is not being created'),
  row(
    PODS,
    'workspace_id cluster_id cluster_name',
    'always: the marketplace has neither workspaces nor clusters',
  ),
  row(PODS, 'volume_encryption_status', 'always: volumes are not encrypted'),
  row(PODS, 'reason_code message', 'there is nothing to report'),
  row(PODS, 'max_spend_usd idle_shutdown_minutes', 'no limit is set'),
  row('PodExecutor', 'validator_hotkey', 'no validator has checked the node yet'),
  row('PodExecutor', 'location', 'the country of the node is unknown'),
  row(
    'PodExecutor',
    'uptime_in_minutes',
    'the node has not passed its checks yet, or the last check did not reach it',
  ),
  row('PodExecutor', 'disk_health_ok', 'the host does not report it'),
  row('PodDetailResponse', 'last_event', 'nothing was recorded yet'),
  row('PodDetailResponse', 'backup_config', 'the pod has no backup schedule'),
  row('PodDetailResponse', 'deleted_at', 'absent while the pod exists'),
  row(
    'RentBySpecResponse',
    'pod_id id pod template_id',
    'a dry run rents nothing; the template is null for a Dockerfile',
  ),
  row('RentBySpecResponse', 'funnel nearest', 'absent without `explain`'),
  row('PodChatChannelResponse', 'channel_url', 'the channel has no address'),
  row(
    'AccountEvent',
    'pod_id pod_name from_status to_status',
    'the event concerns the account, or no change of status',
  ),
  row(
    'AccountEvent',
    'actor.api_key_id actor.api_key_name request_id',
    'the actor used no API key, or no request caused the event',
  ),
  row(
    'AccountEvent',
    'reason detail error event.detail event.error',
    'there is nothing to add, or nothing failed',
  ),
];

const RESOURCES: readonly NullableFields[] = [
  row('TemplateResponse', 'user_id', 'the template is official'),
  row('TemplateResponse', 'docker_image_size', 'the owner did not state it'),
  row(
    'TemplateResponse',
    'supports_docker',
    'always: whether containers can run inside the pod depends on the node',
  ),
  row('TemplateResponse', 'docker_credential_id', 'the image is public'),
  row('DockerCredential', 'name', 'none was given'),
  row('Volume', 'attached_pod_id', 'no pod has the volume'),
  row('Volume', 'executor_id', 'the newest data is saved'),
  row('Volume', 'last_metrics_update last_saved_at', 'not measured, or not saved yet'),
  row('Volume', 'progress message', 'no operation runs, or none has a problem'),
  row(
    'VolumeStats',
    'attached_pod_id last_metrics_update',
    'no pod has the volume, or not measured',
  ),
  row(
    'MachineRequest',
    'gpu_count hourly_budget country min_vram_gb notes',
    'the request does not state it',
  ),
  row('MachineRequest', 'fulfilled_executor_id', 'no provider has fulfilled the request'),
  row('BackupConfig', 'next_run_at', 'the schedule is not active'),
  row(
    OPERATIONS,
    'started_at completed_at last_heartbeat_at stage',
    'the operation has not begun, or runs; it has no stage once it has ended',
  ),
  row(OPERATIONS, 'error_message error_code status_message', 'nothing failed'),
  row(
    OPERATIONS,
    'total_files processed_files total_bytes processed_bytes elapsed_seconds throughput_bytes_per_second estimated_remaining_seconds',
    'the node has not reported it yet',
  ),
  row('BackupLog', 'backup_config_id', 'the backup was requested by hand'),
  row('BackupLog', 'name description', 'none was given'),
  row('BackupLog', 'backup_volume_id', 'always: backups are stored in repositories'),
  row(
    'BackupLog',
    'deletion_state physical_cleanup_at expires_at',
    'the backup is retained, or has no end',
  ),
  row('BackupLog', 'sha256 quality', 'the backup is not complete'),
  row(
    'BackupLog',
    'changed_files changed_files_total',
    'the backup is not complete, or its node cannot list them',
  ),
  row(
    'BackupLog',
    'verify_status verified_at verify_error verify_error_code verified_files verified_bytes',
    'no drill was run, or none has failed',
  ),
  row('RestoreLogResponse', 'logs', 'the node has written none'),
  row('GET /backup-configs/pod/{pod_id}', '', 'the pod has no backup schedule'),
];

const ACCOUNTS: readonly NullableFields[] = [
  row('User', 'runs_out_at', 'no pod costs anything, or the money never runs out'),
  row('User', 'stripe_customer_id', 'no payment method was stored'),
  row('User', 'stripe_connect_account_id', 'the onboarding has not begun'),
  row('User', 'discord_id', 'no chat account is linked'),
  row('User', 'avatar_url company_name default_template_id', 'the owner set none'),
  row('User', 'validator_hotkey', 'no validator is linked'),
  row('User', 'workspace', 'always: the marketplace has no workspaces'),
  row('UserPreference', 'default_template_id default_template', 'none is set'),
  row('PayoutAccount', 'stripe_connect_account_id', 'the onboarding has not begun'),
  row('PayoutAccount', 'onboarding_url', 'the onboarding was not begun by this request'),
  row(
    'ChatOAuthAuthorizationUrlResponse',
    'authorization_url',
    'the marketplace has no chat platform',
  ),
  row('ChatOAuthCallbackResponse', 'discord_id discord_username', 'nothing is linked'),
  row('GET /users/me/chat/callback', '', 'the user declined, or there is no chat platform'),
  row('GET /users/me/auto-top-up', '', 'it was never set'),
  row('AutoTopUp', 'monthly_limit_usd payment_method_id', 'none is set'),
  row(
    'AutoTopUp',
    'last_attempt_at last_error',
    'nothing was charged, or the last charge succeeded',
  ),
  row('LowBalanceThreshold', 'threshold_usd runway_minutes', 'the default applies'),
  row(['TransferHistoryDto', 'TransferResponse'], 'note', 'none was given'),
  row('AlphaQuote', 'converted rate', 'the rate of the subnet is unknown'),
  row('LedgerPage', 'next_after', 'this is the last page'),
  row('PresignedUpload', 'public_url', 'the object is not public'),
  row('ApiKey', 'key', 'the caller has no session, or retrieval is switched off'),
  row('ApiKey', 'expires_at last_used', 'the key never expires, or was never used'),
  row('ApiKey', 'scopes daily_budget_usd max_budget_usd', 'the key is not limited'),
  row('ApiKey', 'workspace_id', 'always: the marketplace has no workspaces'),
  row(
    WEBHOOKS,
    'disabled_reason failing_since next_attempt_at',
    'the webhook works, or nothing waits to be sent',
  ),
  row('WebhookDelivery', 'status error', 'the receiver did not answer, or the delivery succeeded'),
];

const PROVIDERS: readonly NullableFields[] = [
  row('OperatorAccount', 'pods[].ended_at', 'the pod has not ended'),
  row('Miner', 'email discord_id', 'none is set or linked'),
  row(
    'ProviderProfile',
    'miner_coldkey email discord_id',
    'no coldkey is known; none is set or linked',
  ),
  row(
    'GET /auth/me/discord/callback',
    'data',
    'the provider declined, or there is no chat platform',
  ),
  row(TOKENS, 'expires_at last_used', 'the token never expires, or was never used'),
  row('NodePod', 'removal_scheduled_at', 'no removal is scheduled'),
  row('PortalNode', 'min_gpu_count_for_rental', 'the node is rented whole only'),
  row('PortalNode', 'notice_period', 'nothing is announced'),
  row('PortalNode', 'validator_hotkey', 'no validator has checked the node yet'),
  row(
    REASONS,
    'blocking_reasons[].fix_command blocking_reasons[].verify_command blocking_reasons[].requires',
    'no command fixes it, or needs nothing else',
  ),
  row('PortalNode', 'location', 'the country of the node is unknown'),
  row('NodeLocation', 'entered updated_at', 'the provider entered no place'),
  row(REASONS, 'blocking_reasons[].docs_url', 'the operator configured no documentation'),
  row('Verification', 'checked_at', 'no validator has checked the node yet'),
  row('Verification', 'score', 'always: verdicts have no score'),
  row(
    'PortalRequest',
    'gpu_count hourly_budget country notes fulfilled_executor_id',
    'the request does not state it, or is not fulfilled',
  ),
  row('BillingRow', 'pod_id gross_usd fee_usd net_usd', 'the row belongs to another provider'),
];

const VALIDATORS: readonly NullableFields[] = [
  row('ExecutorHealthCheckResponse', 'error details reason_code', 'the node passed its checks'),
  row(WEIGHTS, 'current_block', 'the validator did not report it'),
  row(
    DIGESTS,
    'manifest.previousDigest manifest.rollbackTo',
    'the release is the first, or allows no return to an older one',
  ),
  row(
    'POST /validator/{validator_hotkey}/executors',
    '[].uptime_in_minutes [].pod_ids [].price_uusd [].collateral_deposited [].provider_banned',
    'the node has not passed its checks yet; only earlier versions of the central API leave the other members out',
  ),
];

export const NULLABLE_FIELDS: readonly NullableFields[] = [
  ...NODES,
  ...POD_ROWS,
  ...RESOURCES,
  ...ACCOUNTS,
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
