/** The one error that requests of the console end with. */

export type FieldProblem = {
  /** Path of the field, starting with `body`, `path` or `query`. */
  field: string;
  message: string;
};

export type FailureFacts = {
  /** HTTP status; 0 if no response arrived. */
  status: number;
  code: string;
  hint: string;
  requestId: string | null;
  problems: readonly FieldProblem[];
  /** Further members that errors of some codes have. */
  details?: Readonly<Record<string, unknown>>;
  /** Token of the session that the server rejected; absent if the request had no session. */
  rejectedToken?: string;
  /** The server closed a connection that the page opens again only at its reader's request. */
  isConnection?: true;
};

export const UNREACHABLE = 'unreachable';
const NOT_SENT = 'form_incomplete';

export class ApiFailure extends Error {
  readonly facts: FailureFacts;

  constructor(message: string, facts: FailureFacts) {
    super(message);
    this.name = 'ApiFailure';
    this.facts = facts;
  }

  /** True if the session has ended, so the request succeeds after a log-in. */
  get isExpired(): boolean {
    return isSessionEnd(this.facts.status);
  }
}

/** The portal answers 419 for an expired session, the API 401. */
export function isSessionEnd(status: number): boolean {
  return status === 401 || status === 419;
}

/** Wraps an error of `fetch`: the server did not answer. */
export function unreachable(): ApiFailure {
  return new ApiFailure('The server did not answer', {
    status: 0,
    code: UNREACHABLE,
    hint: 'Check your connection, then try again.',
    requestId: null,
    problems: [],
  });
}

/**
 * Failure of a form that was not sent, because the page cannot use its input. `problems` are shown at their fields, which
 * are members of the body.
 */
export function notSent(message: string, problems: readonly FieldProblem[] = []): ApiFailure {
  return new ApiFailure(message, {
    status: 0,
    code: NOT_SENT,
    hint: 'Change the form, then send it again. Nothing was sent.',
    requestId: null,
    problems,
  });
}

/** True if the page made the failure from the input of a form, and sent nothing. */
export function isNotSent(failure: ApiFailure): boolean {
  return failure.facts.code === NOT_SENT;
}

/** The failure of a request whose session the server has rejected. */
export function ofSession(failure: ApiFailure, rejectedToken: string): ApiFailure {
  return new ApiFailure(failure.message, { ...failure.facts, rejectedToken });
}

/**
 * Reads the body of an error response, which has the form of problem details (RFC 9457). Bodies of other forms, such as
 * those of proxies, become a general failure.
 */
export function failureFrom(status: number, body: unknown, requestId: string | null): ApiFailure {
  const { detail, code, hint, validation_errors: problems, details } = membersOf(body);
  return new ApiFailure(textOf(detail) ?? `The server answered with status ${status}`, {
    status,
    code: textOf(code) ?? `status_${status}`,
    hint: textOf(hint) ?? 'Try again. If it fails again, report the request id to the operator.',
    requestId,
    problems: (Array.isArray(problems) ? problems : []).flatMap(problemFrom),
    ...(typeof details === 'object' && details !== null ? { details: membersOf(details) } : {}),
  });
}

/**
 * True if a repeat must have the same Idempotency-Key, because the failed request may have had its effect. After
 * a definite refusal, the request may be changed and sent with a new key.
 */
export function mayHaveSucceeded(error: unknown): boolean {
  if (!(error instanceof ApiFailure)) return true;
  const { status, code } = error.facts;
  if (status === 0) return code === UNREACHABLE;
  return status < 400 || status >= 500 || code.startsWith('idempotency');
}

const MAX_RETRIES = 2;

/**
 * True if a request is repeated by itself, because the server did not answer, or is starting or
 * overloaded. `count` is the number of earlier repeats.
 */
export function isRepeated(count: number, error: unknown): boolean {
  if (!(error instanceof ApiFailure) || count >= MAX_RETRIES) return false;
  const { status, code } = error.facts;
  return code === UNREACHABLE || status >= 502;
}

/** Statuses of refusals that end by themselves: a timeout, a conflict with the present state, a limit. */
const PASSING: ReadonlySet<number> = new Set([408, 409, 425, 429]);

/**
 * True if the same request can succeed later without a change by the reader. A closed connection is always tried again
 * at the reader's request: the page has no other way to open it.
 */
export function mayPass(failure: ApiFailure): boolean {
  const { status, code, isConnection = false } = failure.facts;
  if (isConnection) return true;
  if (status === 0) return !isNotSent(failure);
  return status < 400 || status >= 500 || PASSING.has(status) || code === 'pod_state_conflict';
}

/** True if the address of a page names no object: the server has none, or rejects the id itself. */
export function namesNothing(failure: ApiFailure): boolean {
  const { status, problems } = failure.facts;
  if (status === 404 || status === 410) return true;
  return problems.length > 0 && problems.every(({ field }) => field.startsWith('path.'));
}

/** Wraps any error that a panel shows. */
export function failureOf(error: unknown): ApiFailure {
  if (error instanceof ApiFailure) return error;
  return new ApiFailure('This part of the page failed', {
    status: 0,
    code: 'page_error',
    hint: `Try again, or load the page again. ${error instanceof Error ? error.message : ''}`.trim(),
    requestId: null,
    problems: [],
  });
}

function problemFrom(entry: unknown): FieldProblem[] {
  const { field, message } = membersOf(entry);
  return typeof field === 'string' && typeof message === 'string' ? [{ field, message }] : [];
}

function membersOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}
