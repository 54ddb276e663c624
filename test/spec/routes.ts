/** The interface's route table: method, path, security, request model, response. */

/** `JWT` or `-` for the security; models by name, `X[]` for a list of X, `-` for none or an unnamed one. */
type Row = readonly [
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  path: string,
  security: 'JWT' | '-',
  request: string,
  response: string,
  status?: 201,
];

const GENERAL: readonly Row[] = [
  ['GET', '/', '-', '-', '-'],
  ['GET', '/sleep/{seconds}', '-', '-', '-'],
  ['GET', '/version', '-', '-', '-'],
  ['POST', '/users', '-', 'CreateUserDto', '-'],
  ['GET', '/users/get-ip', '-', '-', '-'],
  ['GET', '/users/search', '-', '-', '-'],
  ['POST', '/users/login', '-', 'LoginUserDto', '-'],
  ['GET', '/users/me', 'JWT', '-', '-'],
  ['PUT', '/users/me', 'JWT', 'UpdateUserDto', '-'],
  ['DELETE', '/users/me', 'JWT', '-', '-'],
  ['GET', '/users/me/chat/oauth-url', 'JWT', '-', 'ChatOAuthAuthorizationUrlResponse'],
  ['GET', '/users/me/chat/callback', 'JWT', '-', 'ChatOAuthCallbackResponse'],
  ['DELETE', '/users/me/chat', 'JWT', '-', '-'],
  ['GET', '/users/me/preference', 'JWT', '-', '-'],
  ['DELETE', '/users/me/preference/default-template', 'JWT', '-', '-'],
  ['POST', '/users/request-reset-password', '-', 'RequestResetPasswordDto', '-'],
  ['POST', '/users/reset-password', '-', 'ResetPasswordDto', '-'],
  ['POST', '/users/presigned-url', 'JWT', 'FileInput', '-', 201],
  ['GET', '/users/me/auto-top-up', 'JWT', '-', 'AutoTopUp'],
  ['PUT', '/users/me/auto-top-up', 'JWT', 'AutoTopUpUpdateDto', 'AutoTopUp'],
  ['GET', '/users/me/notification', 'JWT', '-', 'EffectiveNotificationSettingDto'],
  ['PUT', '/users/me/notification', 'JWT', 'NotificationSettingUpdateDto', 'NotificationSetting'],
  ['GET', '/users/me/low-balance-threshold', 'JWT', '-', 'EffectiveLowBalanceConfigDto'],
  [
    'PUT',
    '/users/me/low-balance-threshold',
    'JWT',
    'LowBalanceThresholdUpdateDto',
    'LowBalanceThreshold',
  ],
  ['POST', '/users/me/transfer-credits', 'JWT', 'TransferCreditsDto', '-'],
  ['GET', '/users/me/events', 'JWT', '-', '-'],
  ['GET', '/users/me/transfer-history', 'JWT', '-', 'TransferHistoryDto[]'],
  ['GET', '/users/me/transfer-credit-history', 'JWT', '-', 'TransferHistoryDto[]'],
  ['PUT', '/users/me/referral-payout-method', 'JWT', 'ReferralPayoutMethodUpdateDto', 'User'],
  ['GET', '/ssh-keys', 'JWT', '-', 'SshKey[]'],
  ['POST', '/ssh-keys', 'JWT', 'CreateSshKey', 'SshKey'],
  ['GET', '/ssh-keys/{id}', 'JWT', '-', 'SshKey'],
  ['PUT', '/ssh-keys/{id}', 'JWT', 'CreateSshKey', 'SshKey'],
  ['DELETE', '/ssh-keys/{id}', 'JWT', '-', 'SshKey'],
];

const VALIDATORS: readonly Row[] = [
  ['POST', '/validator/{validator_hotkey}/executors', '-', '-', '-'],
  ['POST', '/validator/{validator_hotkey}/latest-set-weights', '-', 'LatestSetWeightsRequest', '-'],
  ['GET', '/validator/{validator_hotkey}/latest-set-weights', '-', '-', '-'],
  [
    'POST',
    '/validator/{validator_hotkey}/executor-health-check',
    'JWT',
    'ExecutorHealthCheckRequest',
    'ExecutorHealthCheckResponse',
  ],
  ['GET', '/updater/digest', '-', '-', '-'],
];

const NODES: readonly Row[] = [
  ['GET', '/executors', 'JWT', '-', 'ExecutorDetailResponse[]'],
  ['POST', '/executors/{executor_uuid}/rent', 'JWT', 'RentExecutorRequest', '-'],
  ['POST', '/executors/rent-by-spec', 'JWT', '-', '-'],
  ['GET', '/executors/count', '-', '-', '-'],
  ['GET', '/executors/total-count', '-', '-', 'TotalCountExecutorResponse'],
  ['GET', '/executors/stats', '-', '-', 'ExecutorStatsResponse[]'],
  ['GET', '/executors/default-docker-image', '-', '-', 'DefaultDockerImage[]'],
  ['GET', '/executors/deployment-estimate', 'JWT', '-', 'DeploymentEstimateResponse'],
  ['GET', '/executors/{executor_uuid}/hardware-utilization', '-', '-', '-'],
];

const PODS: readonly Row[] = [
  ['GET', '/pods', 'JWT', '-', 'PodListItemResponse[]'],
  ['GET', '/pods/{id}', 'JWT', '-', 'PodDetailResponse'],
  ['PATCH', '/pods/{id}', 'JWT', 'PodUpdateRequest', 'Pod'],
  ['PUT', '/pods/{id}', 'JWT', 'CustomTemplateRequest', 'TemplateResponse'],
  ['DELETE', '/pods/{id}', 'JWT', '-', '-'],
  ['POST', '/pods/{id}/chat-channel', 'JWT', 'PodChatChannelRequest', 'PodChatChannelResponse'],
  ['POST', '/pods/{id}/like', 'JWT', '-', 'Pod'],
  ['POST', '/pods/{id}/schedule-removal', 'JWT', 'ScheduleRemovalRequest', '-'],
  ['DELETE', '/pods/{id}/schedule-removal', 'JWT', '-', '-'],
  ['POST', '/pods/{id}/multiple-ssh-keys', 'JWT', 'AddMultipleSshKeysToPodRequest', '-'],
  ['POST', '/pods/{id}/reboot', 'JWT', 'RebootPodRequest', '-'],
  ['PUT', '/pods/{id}/switch-template', 'JWT', 'SwitchTemplatePodRequest', 'Pod'],
  ['POST', '/pods/{id}/install-jupyter', 'JWT', 'InstallJupyterRequest', 'Pod'],
  ['GET', '/pods/{id}/events', 'JWT', '-', '-'],
  ['POST', '/pods/{pod_id}/backup', 'JWT', 'ManualBackupTriggerRequest', '-'],
  ['GET', '/pods/{pod_uuid}/restore-logs', 'JWT', '-', 'PaginatedResponse'],
  ['POST', '/pods/{pod_uuid}/restore', 'JWT', 'RestoreRequest', '-'],
  ['POST', '/pods/{pod_id}/feedback', 'JWT', 'FeedbackRequest', 'FeedbackResponse', 201],
  ['GET', '/pods/{pod_id}/gpu-utilization', '-', '-', '-'],
  ['GET', '/pods/{pod_id}/logs', 'JWT', '-', '-'],
];

/** Routes without a stated security: `-`. */
const OTHERS: readonly Row[] = [
  ['GET', '/templates', '-', '-', '-'],
  ['GET', '/keys', 'JWT', '-', '-'],
  ['POST', '/keys', 'JWT', '-', '-'],
  ['GET', '/keys/scopes', '-', '-', '-'],
  ['GET', '/keys/{id}/refusals', 'JWT', '-', '-'],
  ['GET', '/balance/convert/alpha', '-', '-', '-'],
  ['GET', '/balance/alpha/subnets', '-', '-', '-'],
  ['GET', '/volumes', 'JWT', '-', '-'],
  ['POST', '/volumes', 'JWT', '-', '-'],
  ['GET', '/volumes/{volume_id}/current-stats', 'JWT', '-', '-'],
  ['GET', '/bookmark', 'JWT', '-', '-'],
  ['POST', '/bookmark', 'JWT', '-', '-'],
  ['GET', '/machine-requests', 'JWT', '-', '-'],
  ['POST', '/machine-requests', 'JWT', '-', '-'],
  ['GET', '/backup-configs', 'JWT', '-', '-'],
  ['POST', '/backup-configs', 'JWT', '-', '-'],
  ['GET', '/backup-logs', 'JWT', '-', '-'],
  ['GET', '/openapi.json', '-', '-', '-'],
  ['GET', '/v1/shared-config', '-', '-', '-'],
];

export type SpecifiedRoute = {
  method: string;
  path: string;
  security: 'JWT' | '-';
  request: string;
  response: string;
  status: number;
};

export const ROUTES: readonly SpecifiedRoute[] = [
  ...GENERAL,
  ...VALIDATORS,
  ...NODES,
  ...PODS,
  ...OTHERS,
].map(([method, path, security, request, response, status = 200]) => ({
  method,
  path,
  security,
  request,
  response,
  status,
}));

/** Error statuses that the route table lists beside 422. */
export const LISTED_ERRORS: Readonly<Record<string, readonly number[]>> = {
  'GET /updater/digest': [502],
  'GET /executors': [500],
  'POST /executors/rent-by-spec': [409],
  'GET /executors/stats': [500],
  'GET /executors/default-docker-image': [404],
  'GET /executors/{executor_uuid}/hardware-utilization': [404, 500],
  'GET /pods': [500],
  'GET /pods/{id}': [404, 500],
  'PATCH /pods/{id}': [400, 404, 500],
  'PUT /pods/{id}': [400, 404, 500],
  'DELETE /pods/{id}': [404, 500],
  'POST /pods/{id}/chat-channel': [400, 403, 404, 500],
  'POST /pods/{id}/like': [404, 500],
  'POST /pods/{id}/schedule-removal': [400, 404, 500],
  'DELETE /pods/{id}/schedule-removal': [400, 404, 500],
  'POST /pods/{id}/multiple-ssh-keys': [400, 404, 500],
  'POST /pods/{id}/reboot': [400, 404, 500],
  'PUT /pods/{id}/switch-template': [400, 404, 500],
  'POST /pods/{pod_id}/backup': [400, 404, 500],
  'GET /pods/{pod_uuid}/restore-logs': [404, 500],
  'POST /pods/{pod_uuid}/restore': [400, 404, 500],
  'GET /pods/{pod_id}/gpu-utilization': [404, 500],
  'GET /pods/{pod_id}/logs': [403, 404, 500],
  'GET /volumes/{volume_id}/current-stats': [404],
};

/** Routes below /portal that the interface names by method and path. */
export const PORTAL_ROUTES: readonly (readonly [method: string, path: string])[] = [
  ['GET', '/auth/me'],
  ['POST', '/executors'],
  ['POST', '/machine-added'],
];

/** Portal routes of the public interface; the portal's other routes are additions. */
export const PORTAL_INTERFACE: readonly string[] = [
  'GET /auth/me',
  'GET /auth/me/discord/oauth-url',
  'POST /auth/login-flexible',
  'POST /auth/set-email',
  'POST /auth/set-password',
  'POST /auth/set-machine-request-subscription',
  'POST /auth/logout',
  'POST /miners/opt-in',
  'POST /providers/opt-in',
  'GET /executors',
  'POST /executors',
  'GET /executors/{id}',
  'DELETE /executors/{id}',
  'POST /executors/{id}/update-price',
  'POST /executors/{id}/update-gpu',
  'POST /executors/{id}/min-gpu-count-for-rental',
  'DELETE /executors/{id}/min-gpu-count-for-rental',
  'GET /executors/{id}/pods',
  'GET /executors/{id}/machine-requests',
  'GET /executors/{id}/verification',
  'POST /executors/{id}/notice-period',
  'DELETE /executors/{id}/notice-period',
  'POST /executors/{id}/machine-added',
  'POST /machine-added',
  'POST /executors/sync-executor-central-miner',
  'POST /executors/sync-executor-central-provider',
  'POST /executors/sync-executor-miner-portal',
  'GET /billing',
  'GET /billing/{hotkey}',
  'GET /machine-requests',
  'GET /machine-requests/{id}',
  'GET /machines',
  'GET /machines/estimated-rewards',
  'GET /v1/shared-config',
];

/**
 * The other portal routes. `token` routes require a portal token; `{id}` is a node of the caller, the other ids do not
 * exist.
 */
export const PORTAL_OPERATIONS: readonly (readonly [
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  auth: 'open' | 'token',
])[] = [
  ['POST', '/auth/login-flexible', 'open'],
  ['POST', '/auth/login', 'open'],
  ['POST', '/auth/exchange-ticket', 'open'],
  ['POST', '/auth/set-password', 'open'],
  ['POST', '/auth/tickets', 'token'],
  ['GET', '/auth/me', 'token'],
  ['POST', '/auth/logout', 'token'],
  ['POST', '/auth/set-email', 'token'],
  ['POST', '/auth/set-machine-request-subscription', 'token'],
  ['GET', '/auth/me/discord/oauth-url', 'token'],
  ['GET', '/auth/me/discord/callback', 'token'],
  ['DELETE', '/auth/me/discord', 'token'],
  ['GET', '/auth/tokens', 'token'],
  ['POST', '/auth/tokens', 'token'],
  ['DELETE', '/auth/tokens/{token}', 'token'],
  ['POST', '/miners/opt-in', 'token'],
  ['POST', '/providers/opt-in', 'token'],
  ['GET', '/executors', 'token'],
  ['POST', '/executors', 'token'],
  ['POST', '/executors/sync-executor-central-miner', 'token'],
  ['POST', '/executors/sync-executor-central-provider', 'token'],
  ['POST', '/executors/sync-executor-miner-portal', 'token'],
  ['GET', '/executors/{id}', 'token'],
  ['DELETE', '/executors/{id}', 'token'],
  ['GET', '/executors/{id}/pods', 'token'],
  ['GET', '/executors/{id}/metrics', 'token'],
  ['GET', '/executors/{id}/verification', 'token'],
  ['POST', '/executors/{id}/update-price', 'token'],
  ['POST', '/executors/{id}/update-gpu', 'token'],
  ['POST', '/executors/{id}/min-gpu-count-for-rental', 'token'],
  ['DELETE', '/executors/{id}/min-gpu-count-for-rental', 'token'],
  ['GET', '/executors/{id}/location', 'token'],
  ['POST', '/executors/{id}/location', 'token'],
  ['DELETE', '/executors/{id}/location', 'token'],
  ['POST', '/executors/{id}/pause', 'token'],
  ['POST', '/executors/{id}/resume', 'token'],
  ['POST', '/executors/{id}/notice-period', 'token'],
  ['DELETE', '/executors/{id}/notice-period', 'token'],
  ['GET', '/executors/{id}/machine-requests', 'token'],
  ['POST', '/executors/{id}/machine-added', 'token'],
  ['POST', '/machine-added', 'token'],
  ['GET', '/machine-requests', 'token'],
  ['GET', '/machine-requests/{request}', 'token'],
  ['GET', '/billing', 'token'],
  ['GET', '/billing/nodes', 'token'],
  ['GET', '/billing/{hotkey}', 'token'],
  ['GET', '/openapi.json', 'open'],
  ['GET', '/machines', 'open'],
  ['GET', '/machines/estimated-rewards', 'open'],
  ['GET', '/v1/shared-config', 'open'],
];

/** Filters of nodes, and of pods by their nodes. */
const NODE_FILTERS = [
  'machine_names string',
  'price_lte number',
  'price_gte number',
  'gpu_count_lte integer',
  'gpu_count_gte integer',
  'lat number',
  'lon number',
  'max_distance_mile number',
  'bookmarked boolean',
  'machine_request_id string',
  'collateral_deposited boolean',
] as const;

/** Query parameters: name, then type; `!` marks required ones, `=` a default. */
export const QUERIES: Readonly<Record<string, readonly string[]>> = {
  'GET /users/search': ['email! string'],
  'GET /users/me/chat/callback': ['code string', 'state string', 'error string'],
  'GET /executors': ['page integer', 'size integer', ...NODE_FILTERS],
  'GET /executors/default-docker-image': ['gpu_model! string', 'driver_version string'],
  'GET /executors/deployment-estimate': ['template_id! string', 'executor_id! string'],
  'GET /pods': [...NODE_FILTERS, 'only_favorites boolean'],
  'GET /pods/{pod_uuid}/restore-logs': ['page integer=1', 'limit integer=20'],
  'GET /pods/{pod_id}/logs': ['tail integer=100', 'follow boolean=false'],
};
