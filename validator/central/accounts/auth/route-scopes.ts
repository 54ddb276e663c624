/**
 * The scope that each route below /api requires of an API key. A new route needs a line in ROUTE_FAMILIES;
 * test/spec/scopes.test.ts fails without it, and at run time keys need `manage` for it.
 */
import type { FastifyRequest } from 'fastify';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Identity, KeyScope } from '../../platform/identity.ts';

/**
 * `open`: no credential is required. `any`: every key may call it, whatever its scopes. `no_key`: a key does not grant
 * access; the route requires a session or a signature, or is a public route of validators.
 */
export type RouteFamily = KeyScope | 'open' | 'any' | 'no_key';

const PREFIX = '/api';

/** `METHOD /path` below /api, by family. Below /portal no route accepts API keys. */
export const ROUTE_FAMILIES: Readonly<Record<RouteFamily, readonly string[]>> = {
  open: [
    'GET /',
    'GET /version',
    'GET /sleep/{seconds}',
    'GET /openapi.json',
    'GET /v1/shared-config',
    'GET /_local/outbox',
    'POST /users',
    'POST /auth/signup',
    'POST /auth/exchange-ticket',
    'POST /users/login',
    'GET /users/get-ip',
    'GET /users/search',
    'POST /auth/resend-verify-email',
    'POST /auth/verify-email',
    'POST /users/request-reset-password',
    'POST /users/reset-password',
    'GET /executors',
    'GET /executors/{executor_uuid}',
    'GET /executors/count',
    'GET /executors/total-count',
    'GET /executors/stats',
    'GET /executors/default-docker-image',
    'GET /executors/{executor_uuid}/reliability',
    'GET /executors/{executor_uuid}/rentability',
    'GET /executors/{executor_uuid}/hardware-utilization',
    'GET /machines',
    'GET /machines/capacity',
    'GET /templates',
    'GET /templates/{id}',
    'GET /pods/{pod_id}/gpu-utilization',
    'GET /keys/scopes',
    'GET /balance/convert/alpha',
    'GET /balance/alpha/subnets',
    'GET /latest-set-weights',
    'GET /validator/{validator_hotkey}/latest-set-weights',
    'GET /updater/digest',
    'GET /watchtower/digest',
  ],
  any: [
    'GET /pods/{id}/events',
    // A ticket carries the scopes of its key to the stream.
    'POST /pods/{id}/stream-ticket',
    'POST /users/me/stream-ticket',
  ],
  read: [
    'GET /users/me',
    'GET /users/me/preference',
    'GET /users/me/events',
    'GET /users/me/events/stream',
    'GET /users/me/ledger',
    'GET /users/me/search',
    'GET /users/me/auto-top-up',
    'GET /users/me/notification',
    'GET /users/me/low-balance-threshold',
    'GET /users/me/transfer-history',
    'GET /users/me/transfer-credit-history',
    'GET /keys',
    'GET /keys/{id}',
    'GET /keys/{id}/refusals',
    'GET /ssh-keys',
    'GET /ssh-keys/{id}',
    'GET /secrets',
    'GET /docker-credentials',
    'GET /docker-credentials/{id}',
    'GET /executors/deployment-estimate',
    'GET /pods',
    'GET /pods/history',
    'GET /pods/{id}',
    'GET /pods/{id}/metrics',
    'GET /pods/{id}/statement',
    'GET /pod-reports',
    'GET /pods/{pod_id}/logs',
    'GET /pods/{pod_uuid}/restore-logs',
    'GET /volumes',
    'GET /volumes/{id}',
    'GET /volumes/{volume_id}/current-stats',
    'GET /bookmark',
    'GET /bookmarks',
    'GET /machine-requests',
    'GET /machine-requests/{id}',
    'GET /backup-configs',
    'GET /backup-configs/pod/{pod_id}',
    'GET /backup-logs',
    'GET /backup-logs/pod/{pod_id}',
    'GET /backup-logs/{id}',
    'GET /webhooks',
    'GET /webhooks/{id}',
    'GET /webhooks/{id}/deliveries',
    // The account also needs the operator's role.
    'GET /operator/accounts',
    'GET /operator/accounts/{id}',
    'GET /operator/audit',
    'GET /operator/fleet',
    'GET /operator/fleet/summary',
    'GET /operator/providers',
    'GET /operator/queues',
    'GET /operator/clock',
    'GET /operator/drift',
    'GET /operator/unknown-pods',
    'GET /operator/ledger-proof',
    'GET /operator/validator',
    'GET /operator/validator/cycles',
    'GET /operator/validator/cycles/{number}/verdicts',
    'GET /operator/validator/executors/{id}/evidence',
    'GET /operator/validator/evidence/{id}',
    'GET /operator/validator/epochs',
    'GET /operator/validator/epochs/{number}',
    'GET /operator/validator/epochs/{number}/weights',
    'GET /operator/validator/epochs/{number}/executors/{id}',
    'GET /operator/validator/releases',
    // Only a simulated marketplace has these routes.
    'GET /_local/clock',
    'GET /_local/faults',
    'GET /_local/events',
  ],
  rent: [
    'POST /executors/{executor_uuid}/rent',
    'DELETE /executors/{executor_uuid}/rent',
    'POST /executors/rent-by-spec',
    'PATCH /pods/{id}',
    'PUT /pods/{id}',
    'DELETE /pods/{id}',
    'POST /pods/{id}/reboot',
    'PUT /pods/{id}/switch-template',
    'POST /pods/{id}/multiple-ssh-keys',
    'POST /pods/{id}/install-jupyter',
    'POST /pods/{id}/like',
    'POST /pods/{id}/schedule-removal',
    'DELETE /pods/{id}/schedule-removal',
    'GET /pods/{id}/terminal',
    'POST /pods/{id}/chat-channel',
    'POST /pods/{pod_id}/feedback',
    'POST /pods/{id}/report',
    'POST /pods/{pod_id}/backup',
    'POST /pods/{pod_uuid}/restore',
    'POST /backup-logs/{id}/cancel',
    'POST /restore-logs/{id}/cancel',
    'POST /machine-requests',
    'DELETE /machine-requests/{id}',
  ],
  manage: [
    'PUT /users/me',
    'DELETE /users/me/preference/default-template',
    'PUT /users/me/referral-payout-method',
    'GET /users/me/stripe-connect',
    'POST /users/me/stripe-connect',
    'PUT /users/me/auto-top-up',
    'PUT /users/me/notification',
    'PUT /users/me/low-balance-threshold',
    'POST /users/me/transfer-credits',
    'POST /users/presigned-url',
    'GET /users/me/chat/oauth-url',
    'GET /users/me/chat/callback',
    'DELETE /users/me/chat',
    'POST /ssh-keys',
    'PUT /ssh-keys/{id}',
    'DELETE /ssh-keys/{id}',
    'POST /secrets',
    'DELETE /secrets/{id}',
    'POST /docker-credentials',
    'PUT /docker-credentials/{id}',
    'DELETE /docker-credentials/{id}',
    'POST /templates',
    'PUT /templates/{id}',
    'DELETE /templates/{id}',
    'POST /volumes',
    'PUT /volumes/{id}',
    'DELETE /volumes/{id}',
    'POST /volumes/{id}/release',
    'POST /bookmark',
    'POST /bookmarks',
    'DELETE /bookmark/{executor_id}',
    'DELETE /bookmarks/{executor_id}',
    'POST /backup-configs',
    'DELETE /backup-configs/{id}',
    'DELETE /backup-logs/{id}',
    'POST /backup-logs/{id}/verify',
    'POST /webhooks',
    'PATCH /webhooks/{id}',
    'DELETE /webhooks/{id}',
    'POST /webhooks/{id}/rotate-secret',
    'POST /webhooks/{id}/replay',
    'POST /operator/clock/confirm',
    'POST /operator/executors/{id}/unknown-pods/{pod_id}/adopt',
    'POST /operator/executors/{id}/unknown-pods/{pod_id}/remove',
    'POST /webhooks/{id}/deliveries/{delivery_id}/replay',
    'POST /operator/ledger-proof',
    'POST /operator/pods/{id}/refund',
    'POST /operator/providers/{hotkey}/ban',
    'POST /operator/providers/{hotkey}/unban',
    'POST /_local/clock',
    'POST /_local/faults',
    'DELETE /_local/faults/{number}',
  ],
  no_key: [
    'POST /keys',
    'PATCH /keys/{id}',
    'DELETE /keys/{id}',
    'DELETE /users/me',
    'GET /users/me/sessions',
    'DELETE /users/me/sessions',
    'DELETE /users/me/sessions/{id}',
    'POST /auth/logout',
    'POST /auth/tickets',
    'POST /validator/{validator_hotkey}/executors',
    'POST /validator/{validator_hotkey}/executor-health-check',
    'POST /validator/{validator_hotkey}/latest-set-weights',
    'POST /validator/{validator_hotkey}/pod-reports',
    'POST /validator/{validator_hotkey}/pod-reports/{id}/outcome',
  ],
};

/** Routes that spend money, and so count against the budgets of a key. */
export const MONEY_ROUTES: readonly string[] = [
  '/executors/{executor_uuid}/rent',
  '/executors/rent-by-spec',
  '/users/me/transfer-credits',
  '/users/me/auto-top-up',
];

const FAMILIES = new Map(
  Object.entries(ROUTE_FAMILIES).flatMap(([family, routes]) =>
    routes.map((route) => [route, family as RouteFamily] as const),
  ),
);

/** Returns the family of a route (`GET`, `/pods/{id}`); null for a route that the table does not contain. */
export function familyOf(method: string, path: string): RouteFamily | null {
  return FAMILIES.get(`${method === 'HEAD' ? 'GET' : method} ${path}`) ?? null;
}

const LOCAL = '/_local';

/**
 * Returns the first segments of the paths that a scope permits, such as `/pods`, sorted. Routes below /_local are not
 * part of the interface.
 */
export function pathsOf(scope: KeyScope): string[] {
  const segments = ROUTE_FAMILIES[scope]
    .map((route) => /\/[^/]*/.exec(route)?.[0] ?? '/')
    .filter((segment) => segment !== LOCAL);
  return [...new Set(segments)].toSorted();
}

/** Returns `METHOD /path` of the route that serves a request, with `{name}` for path parameters. */
export function routeNameOf({ method, routeOptions }: FastifyRequest): string {
  return `${method} ${pathOf(routeOptions.url ?? '')}`;
}

function pathOf(url: string): string {
  const path = url.startsWith(PREFIX) ? url.slice(PREFIX.length) : url;
  return (path === '' ? '/' : path).replaceAll(/:(\w+)/g, '{$1}');
}

/**
 * Returns the identity if its API key has the scope of the route. On routes that need no credential, a key without
 * `read` counts as no credential. Throws 403 `forbidden` otherwise, with a message that clients match.
 */
export function withinScope(request: FastifyRequest, identity: Identity | null): Identity | null {
  if (identity?.kind !== 'user' || identity.credential.type !== 'api_key') return identity;
  const { scopes } = identity.credential;
  if (scopes === null) return identity;
  const isOpen = request.routeOptions.config.auth === 'none';
  if (isOpen) return scopes.includes('read') ? identity : null;
  const family = familyOf(request.method, pathOf(request.routeOptions.url ?? '')) ?? 'manage';
  if (family === 'any' || family === 'open' || family === 'no_key' || scopes.includes(family)) {
    return identity;
  }
  throw new ApiError('forbidden', `This API key does not have the '${family}' scope`, {
    hint: 'Use a key with this scope, or log in. The scopes of a key are fixed at its creation.',
    details: { scope: family, scopes: [...scopes] },
  });
}
