/** Error responses: their bodies, and the conversion of thrown errors into them. */

import type { Socket } from 'node:net';
import type { FastifyError, FastifyRequest } from 'fastify';
import { hasZodFastifySchemaValidationErrors, validatorCompiler } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { naiveUtc } from '../runtime/clock.ts';
import { ApiError, OverloadError, type ValidationIssue } from '../runtime/errors.ts';
import { isDiskFull, isOpenFailure } from '../runtime/sqlite.ts';
import { fieldProblem } from './field-problem.ts';
import { STATUS_CODES } from './node-http.ts';
import { parameterProblem } from './parameter-problem.ts';

/**
 * `envelope` is the default. `flat` is `{success: false, message}`, for older groups of routes. `problem` is RFC 9457
 * problem details, for clients that request it with an Accept header.
 */
export type ErrorProfile = 'envelope' | 'flat' | 'problem';

const PROBLEM_TYPE = 'application/problem+json';
const NEVER = /;\s*q=0(?:\.0*)?\s*$/;

/** Returns true if an Accept header names problem details; wildcards do not count. */
export function wantsProblem(accept: string | undefined): boolean {
  if (accept === undefined || !accept.includes(PROBLEM_TYPE)) return false;
  return accept.split(',').some((range) => range.includes(PROBLEM_TYPE) && !NEVER.test(range));
}

export function contentTypeOf(profile: ErrorProfile): string {
  return `${profile === 'problem' ? PROBLEM_TYPE : 'application/json'}; charset=utf-8`;
}

export type ErrorContext = { requestId: string; nowMs: number; profile: ErrorProfile };

/** Returns the body for `error`. It contains only texts of the ApiError, never a stack, query or path. */
export function errorBody(error: ApiError, context: ErrorContext): Record<string, unknown> {
  if (context.profile === 'flat') return { success: false, message: flatMessage(error) };
  const { requestId } = context;
  if (context.profile === 'problem') return problem(error, requestId);
  return {
    success: false,
    error: { code: error.code, message: error.message, hint: error.hint, request_id: requestId },
    message: error.message,
    status_code: error.status,
    error_id: error.status >= 500 ? requestId : null,
    request_id: requestId,
    timestamp: naiveUtc(context.nowMs),
    api_context: null,
    validation_errors: error.options.validationErrors ?? [],
    details: error.options.details ?? null,
    ...error.options.extra,
  };
}

/** Appends the first invalid field to the message, because flat bodies have no member for it. */
function flatMessage({ message, options }: ApiError): string {
  const [first] = options.validationErrors ?? [];
  return first === undefined ? message : `${message}: ${first.field}: ${first.message}`;
}

function problem(error: ApiError, requestId: string): Record<string, unknown> {
  const { validationErrors = [], details = null } = error.options;
  return {
    type: `/errors/${error.code}`,
    title: error.code.replaceAll('_', ' '),
    status: error.status,
    detail: error.message,
    instance: requestId,
    code: error.code,
    hint: error.hint,
    request_id: requestId,
    validation_errors: validationErrors,
    details,
  };
}

const RETRY_OVERLOADED_SECONDS = '5';

/** The request may have changed something before the resource was used up, so the hint names the Idempotency-Key. */
function overloaded(cause: OverloadError): ApiError {
  if (cause.code === 'storage_full') return storageFailure('full', cause);
  return new ApiError(cause.code, cause.message, {
    status: 503,
    hint: 'Retry after the time in Retry-After; with the same Idempotency-Key if there was one.',
    headers: { 'Retry-After': RETRY_OVERLOADED_SECONDS },
    cause,
  });
}

const RETRY_STORAGE_SECONDS = '60';
/** States of the disk on which this process stores its files, by code of the system error. */
const DISK_STATES: Record<string, string> = {
  ENOSPC: 'full',
  EDQUOT: 'full',
  EROFS: 'read-only',
  EACCES: 'not accessible',
};
/** Matches system calls on files. Connections and starts of programs can also fail with EACCES. */
const FILE_CALLS = /^(?:open|mkdir|link|rename|unlink|rmdir|rm|scandir|l?stat|access)$/;

/** Returns the state of the disk that made `error`; null for other errors. */
function diskStateOf(error: unknown): string | null {
  if (isDiskFull(error)) return 'full';
  if (isOpenFailure(error)) return 'not writable';
  if (!(error instanceof Error && 'code' in error)) return null;
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code === 'EACCES' && !FILE_CALLS.test(syscall ?? '')) return null;
  return DISK_STATES[code ?? ''] ?? null;
}

function storageFailure(state: string, cause: unknown): ApiError {
  return new ApiError(
    state === 'full' ? 'storage_full' : 'upstream_unavailable',
    `The storage is ${state}`,
    {
      status: 503,
      hint: 'Retry later; until then the operator has to make the storage writable or free space.',
      headers: { 'Retry-After': RETRY_STORAGE_SECONDS },
      cause,
    },
  );
}

/** The inputs of a request and their schemas. */
type ParameterSource = Pick<
  FastifyRequest,
  'routeOptions' | 'query' | 'params' | 'body' | 'headers'
>;

/**
 * Converts anything thrown for `request` into an ApiError: framework errors are mapped, unexpected ones become a 500.
 */
export function toApiError(error: unknown, request: ParameterSource): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof OverloadError) return overloaded(error);
  if (hasZodFastifySchemaValidationErrors(error)) return validationError(error, request);
  if (isFastifyError(error)) {
    const mapped = fastifyRefusal(error);
    if (mapped !== null) return mapped;
  }
  const state = diskStateOf(error);
  if (state !== null) return storageFailure(state, error);
  return new ApiError('internal_error', 'An unexpected error occurred', { cause: error });
}

type SchemaError = {
  validation: readonly ZodIssue[];
  validationContext?: string | undefined;
};
/** Places of a request in the order in which fastify validates them; it stops at the first invalid place. */
const PLACES = ['params', 'body', 'querystring', 'headers'] as const;
type Place = (typeof PLACES)[number];
type ZodIssue = { instancePath: string; keyword?: string; message?: string; params?: unknown };

/** Names of places in error messages, if they differ. */
const PLACE: Record<string, string> = { querystring: 'query', params: 'path', headers: 'header' };

function validationError(error: SchemaError, request: ParameterSource): ApiError {
  const errors = [error, ...missingBodyErrors(error, request), ...furtherErrors(error, request)];
  const issues = errors.flatMap((each) =>
    each.validation.map((entry) => issueFrom(each, entry, request)),
  );
  const fields = new Set(issues.map((issue) => issue.field));
  return new ApiError('validation_error', 'Request validation failed', {
    validationErrors: issues,
    hint: `Fix ${[...fields].join(', ')} and retry.`,
  });
}

/** Returns the errors of an empty body if there is none, so that the response lists the required fields. */
function missingBodyErrors(error: SchemaError, request: ParameterSource): SchemaError[] {
  const isBody = (error.validationContext ?? 'body') === 'body';
  return isBody && request.body == null ? errorsAt('body', {}, request) : [];
}

/** Validates the places after the invalid one, so that the response lists the problems of all places. */
function furtherErrors(error: SchemaError, request: ParameterSource): SchemaError[] {
  const first = PLACES.indexOf((error.validationContext ?? 'body') as Place);
  return PLACES.slice(first + 1).flatMap((place) => {
    const given = place === 'querystring' ? request.query : request[place];
    return errorsAt(place, given, request);
  });
}

function errorsAt(place: Place, given: unknown, { routeOptions }: ParameterSource): SchemaError[] {
  const schema = routeOptions.schema?.[place];
  if (!(schema instanceof z.ZodType)) return [];
  const result = validatorCompiler({ schema, method: '', url: '' })(given);
  const failure = { validation: (result as { error?: unknown }).error, validationContext: place };
  return hasZodFastifySchemaValidationErrors(failure) ? [failure] : [];
}

function issueFrom(
  { validationContext: context = 'body' }: SchemaError,
  { instancePath, keyword = '', message = 'Invalid value', params }: ZodIssue,
  request: ParameterSource,
): ValidationIssue {
  const path = instancePath.split('/').filter((part) => part !== '');
  const field = [PLACE[context] ?? context, ...path].join('.');
  const isNoBody = context === 'body' && path.length === 0 && request.body == null;
  if (isNoBody || message.endsWith('received undefined')) {
    return { field, message: 'Field required', type: 'missing' };
  }
  const parameters = parametersOf(request, context);
  const [name] = path;
  if (parameters === null || name === undefined) {
    return { field, message: fieldProblem({ keyword, message, params }), type: 'invalid' };
  }
  const value = parameters.values[name];
  const problem = parameterProblem(parameters.schema, { name, value, message, params });
  return { field, message: problem, type: 'invalid' };
}

/** Returns null for bodies and headers. */
function parametersOf(
  { routeOptions, query, params }: ParameterSource,
  context: string,
): { schema: unknown; values: Record<string, unknown> } | null {
  const { schema } = routeOptions;
  if (context === 'querystring') {
    return { schema: schema?.querystring, values: query as Record<string, unknown> };
  }
  if (context === 'params') {
    return { schema: schema?.params, values: params as Record<string, unknown> };
  }
  return null;
}

function isFastifyError(error: unknown): error is FastifyError {
  return error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number';
}

/** Maps requests that the framework rejects before our code runs. */
function fastifyRefusal(error: FastifyError): ApiError | null {
  switch (error.statusCode) {
    case 400:
      return new ApiError('bad_request', 'The request could not be read', {
        hint: 'Send a well-formed HTTP request.',
      });
    case 413:
      return new ApiError('client_error', 'The request body is too large', {
        status: 413,
        hint: 'Send a smaller body.',
      });
    case 414:
      return new ApiError('client_error', 'A part of the path is too long', {
        status: 414,
        hint: 'Use ids exactly as the API returned them.',
      });
    case 415:
      return new ApiError('client_error', 'The content type is not supported', {
        status: 415,
        hint: 'Send JSON with Content-Type: application/json.',
      });
    default:
      return null;
  }
}

type ClientError = { status: number; message: string; hint: string };

/** Error responses by the error code of Node's HTTP parser. */
const CLIENT_ERRORS: Record<string, ClientError> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    message: 'The request headers are too large',
    hint: 'Send fewer or shorter headers.',
  },
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    message: 'The request did not arrive in time',
    hint: 'Send the whole request at once.',
  },
};
const MALFORMED: ClientError = {
  status: 400,
  message: 'The request could not be read',
  hint: 'Send a well-formed HTTP/1.1 request.',
};

/** Errors of connections on which no response can be sent. During a TLS handshake, Node would only queue it. */
const MUTE = /^(?:ECONNRESET$|ERR_(?:TLS|SSL)_)/;

/**
 * Responds to a request that Node could not parse, and closes the connection. The response is written to the socket,
 * because there is no reply object yet. A socket on which no response can be sent is only destroyed.
 */
export function answerClientError(
  error: Error & { code?: string },
  socket: Socket,
  { requestId, nowMs }: { requestId: string; nowMs: number },
): void {
  if (!socket.writable || MUTE.test(error.code ?? '')) {
    socket.destroy();
    return;
  }
  const { status, message, hint } = CLIENT_ERRORS[error.code ?? ''] ?? MALFORMED;
  const refusal = new ApiError(status === 400 ? 'bad_request' : 'client_error', message, {
    status,
    hint,
  });
  const body = JSON.stringify(errorBody(refusal, { requestId, nowMs, profile: 'envelope' }));
  socket.end(
    [
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      `X-Request-Id: ${requestId}`,
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  );
}
