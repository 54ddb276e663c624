/** What of the specification is not served yet, by the part of the work that brings it; and what we serve beyond it. */

/** The tests demand exactly these differences: whoever serves one takes it out of here. */
export const ROUTES_NOT_YET: Readonly<Record<string, readonly string[]>> = {
  'money and portal': [
    'GET /users/me/auto-top-up: missing',
    'GET /users/me/transfer-credit-history: missing',
    'GET /users/me/transfer-history: missing',
    'POST /portal/machine-added: missing',
    'POST /users/me/transfer-credits: missing',
    'PUT /users/me/auto-top-up: missing',
  ],
  validator: ['POST /validator/{validator_hotkey}/executor-health-check: security'],
};

/** Codes of the error table that no request can reach yet. */
export const CODES_NOT_YET: Readonly<Record<string, readonly string[]>> = {};

/** Routes of our own, or of groups that the specification names without their paths. */
export const OWN_ROUTES: readonly string[] = [
  'DELETE /backup-configs/{id}',
  'DELETE /backup-logs/{id}',
  'DELETE /bookmark/{executor_id}',
  'DELETE /bookmarks/{executor_id}',
  'DELETE /docker-credentials/{id}',
  'DELETE /executors/{executor_uuid}/rent',
  'DELETE /keys/{id}',
  'DELETE /machine-requests/{id}',
  'DELETE /templates/{id}',
  'DELETE /volumes/{id}',
  'GET /backup-configs/pod/{pod_id}',
  'GET /backup-logs/pod/{pod_id}',
  'GET /backup-logs/{id}',
  'GET /bookmarks',
  'GET /docker-credentials',
  'GET /docker-credentials/{id}',
  'GET /executors/{executor_uuid}/rentability',
  'GET /keys/{id}',
  'GET /machine-requests/{id}',
  'GET /latest-set-weights',
  'GET /machines',
  'GET /machines/capacity',
  'GET /pods/history',
  'GET /pods/{id}/terminal',
  'GET /templates/{id}',
  'GET /users/me/events/stream',
  'GET /volumes/{id}',
  'GET /watchtower/digest',
  'PATCH /keys/{id}',
  'POST /auth/resend-verify-email',
  'POST /auth/signup',
  'POST /auth/verify-email',
  'POST /backup-logs/{id}/cancel',
  'POST /backup-logs/{id}/verify',
  'POST /bookmarks',
  'POST /docker-credentials',
  'POST /pods/{id}/stream-ticket',
  'POST /restore-logs/{id}/cancel',
  'POST /templates',
  'POST /users/me/stream-ticket',
  'POST /volumes/{id}/release',
  'PUT /docker-credentials/{id}',
  'PUT /templates/{id}',
  'PUT /volumes/{id}',
];
