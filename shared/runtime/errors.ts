/** Every error code of every public interface, with its HTTP status and default hint. */

type ErrorEntry = { status: number; hint: string };

/** Error codes with their status and hint. Clients depend on the codes: they may be added but never removed. */
export const ERROR_TABLE = {
  unauthorized: { status: 401, hint: 'Send a valid API key in X-API-Key or log in again.' },
  api_key_inactive: { status: 401, hint: 'Activate the key or use another one.' },
  ticket_invalid: {
    status: 401,
    hint: 'Create a new ticket with POST /auth/tickets, or log in with the password.',
  },
  insufficient_balance: {
    status: 403,
    hint: 'Top up (PUT /users/me/auto-top-up, or a payment that the operator notes with ledger pay-in), then retry; with a new Idempotency-Key if there was one.',
  },
  account_balance_invalid: { status: 403, hint: 'Contact support and give the request id.' },
  email_not_verified: {
    status: 403,
    hint: 'Confirm your e-mail address with the mailed token (POST /auth/verify-email), then retry.',
  },
  forbidden: { status: 403, hint: 'Use a credential that may do this.' },
  pod_not_found: { status: 404, hint: 'List your pods with GET /pods.' },
  node_not_found: { status: 404, hint: 'List free nodes with GET /executors.' },
  template_not_found: { status: 404, hint: 'List your templates with GET /templates.' },
  volume_not_found: { status: 404, hint: 'List your volumes with GET /volumes.' },
  not_found: { status: 404, hint: 'Check the path and the id.' },
  node_rent_in_progress: { status: 409, hint: 'Retry in a few seconds or rent another node.' },
  node_not_verified: { status: 400, hint: 'Choose a node listed by GET /executors.' },
  node_unavailable: { status: 400, hint: 'Choose a node listed by GET /executors.' },
  node_paused_by_provider: { status: 409, hint: 'Choose another node.' },
  provider_banned: { status: 409, hint: 'Choose a node of another provider.' },
  gpu_count_invalid: { status: 400, hint: 'Request a GPU count that the node offers.' },
  gpu_split_not_allowed: { status: 400, hint: 'Rent the whole node or choose another one.' },
  template_invalid: { status: 400, hint: 'Choose another template or mend this one.' },
  ttl_invalid: { status: 400, hint: 'Choose a termination between 1 and 720 hours from now.' },
  pod_state_conflict: { status: 400, hint: 'Read the pod and retry when its state allows this.' },
  bad_request: { status: 400, hint: 'Change the request as the message says.' },
  validation_error: { status: 422, hint: 'Fix the listed fields and retry.' },
  idempotency_key_invalid: {
    status: 422,
    hint: 'Use 1-255 characters from letters, digits, - _ . : in one Idempotency-Key header.',
  },
  idempotency_key_reused: { status: 422, hint: 'Use a new Idempotency-Key for a new request.' },
  idempotency_in_progress: { status: 409, hint: 'Retry after a second with the same key.' },
  conflict: { status: 409, hint: 'Read the resource again and retry.' },
  no_executor_matches_spec: { status: 409, hint: 'Relax the named constraint.' },
  method_not_allowed: { status: 405, hint: 'Use one of the methods in the Allow header.' },
  rate_limited: { status: 429, hint: 'Wait for the time in Retry-After, then retry.' },
  client_error: { status: 400, hint: 'Change the request as the message says.' },
  upstream_unavailable: {
    status: 502,
    hint: 'Retry in a minute; a request with an Idempotency-Key has one effect however often it is repeated.',
  },
  database_locked: {
    status: 503,
    hint: 'Retry after the time in Retry-After; with the same Idempotency-Key if there was one.',
  },
  database_busy: {
    status: 503,
    hint: 'Retry after the time in Retry-After; with the same Idempotency-Key if there was one.',
  },
  storage_full: {
    status: 503,
    hint: 'Retry later; until then the operator has to free space on the disk.',
  },
  internal_error: { status: 500, hint: 'Retry; if it stays, report the request id.' },
  BACKUP_STORAGE_BUSY: { status: 409, hint: 'Wait for the running operation or cancel it.' },
  API_KEY_BUDGET_EXCEEDED: {
    status: 402,
    hint: 'Raise the budget of the key (PATCH /keys/{id} with a session), then retry; with a new Idempotency-Key if there was one.',
  },
  POD_NOT_FOUND: { status: 404, hint: 'List your pods with GET /pods.' },
  // Signed requests between central, validator and agent (shared/signing/README.md).
  auth_failed: { status: 401, hint: 'Sign the request with a trusted key for this audience.' },
  clock_or_restart: { status: 401, hint: 'Set the clock, then sign again with the present time.' },
  auth_busy: { status: 503, hint: 'Retry in a minute.' },
  tls_required: { status: 403, hint: 'Send it over HTTPS; treat the secret as exposed.' },
  // Returned by the agent only.
  spec_refused: { status: 400, hint: 'Change the named field; the host allows nothing else.' },
  gpu_unavailable: { status: 409, hint: 'Read /v1/inventory and choose free GPUs.' },
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof ERROR_TABLE;

export type ApiErrorOptions = {
  /** One sentence on what to do next; default: the table's hint. */
  hint?: string;
  /** Overrides the table's status, for codes with several (client_error, upstream_unavailable). */
  status?: number;
  details?: Record<string, unknown>;
  /** Additional top-level members of the error body. */
  extra?: Record<string, unknown>;
  headers?: Record<string, string>;
  validationErrors?: ValidationIssue[];
  cause?: unknown;
  /** Suppresses the error log line of an expected 5xx. */
  isExpected?: true;
};

/** One entry of `validation_errors`. */
export type ValidationIssue = { field: string; message: string; type: string };

/** An expected error, sent to the caller. Its message must not contain internals. */
export class ApiError extends Error {
  override name = 'ApiError';
  readonly code: ErrorCode;
  readonly status: number;
  readonly hint: string;
  readonly options: ApiErrorOptions;

  constructor(code: ErrorCode, message: string, options: ApiErrorOptions = {}) {
    super(message, { cause: options.cause });
    this.code = code;
    this.status = options.status ?? ERROR_TABLE[code].status;
    this.hint = options.hint ?? ERROR_TABLE[code].hint;
    this.options = options;
  }
}

/** Codes of a server that cannot serve a request now, although the request may be valid. */
const UNAVAILABLE_CODES = [
  'upstream_unavailable',
  'database_locked',
  'database_busy',
  'storage_full',
] as const satisfies readonly ErrorCode[];

export type UnavailableCode = (typeof UNAVAILABLE_CODES)[number];

/** Returns true if the code reports that a server was not reached or cannot serve now, instead of a refusal. */
export function isUnavailable(code: ErrorCode): code is UnavailableCode {
  return UNAVAILABLE_CODES.some((each) => each === code);
}

/** A resource of this process is temporarily used up. Servers answer with 503, the code and Retry-After. */
export class OverloadError extends Error {
  override name = 'OverloadError';
  readonly code: UnavailableCode;

  constructor(
    message: string,
    { code = 'upstream_unavailable', cause }: { code?: UnavailableCode; cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.code = code;
  }
}

/** Returns a 422 for a field that a schema alone cannot check; `field` begins with body, path, query or header. */
export function invalidField(
  field: string,
  message: string,
  type: 'missing' | 'invalid' = 'invalid',
): ApiError {
  return new ApiError('validation_error', 'Request validation failed', {
    hint: `Fix ${field} and retry.`,
    validationErrors: [{ field, message, type }],
  });
}

/** Returns the message of anything thrown, for logs and operation records. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Returns true for a system error with that code, such as `ENOENT`. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

/** Returns true for a known error code; for bodies received from other processes. */
export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERROR_TABLE, code);
}
