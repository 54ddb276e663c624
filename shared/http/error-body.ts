/** The two error bodies of the interface (specification, Errors; contract 2.3) and how errors become them. */

import type { Socket } from 'node:net';
import type { FastifyError, FastifyRequest } from 'fastify';
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod';
import { naiveUtc } from '../runtime/clock.ts';
import { ApiError, type ValidationIssue } from '../runtime/errors.ts';
import { STATUS_CODES } from './node-http.ts';
import { parameterProblem } from './parameter-problem.ts';

/**
 * `envelope` is the default; `flat` is `{success:false, message}` of the older route groups; `problem` is
 * that of RFC 9457, for clients that ask for it (marketplace reference 1.2).
 */
export type ErrorProfile = 'envelope' | 'flat' | 'problem';

const PROBLEM_TYPE = 'application/problem+json';
const NEVER = /;\s*q=0(?:\.0*)?\s*$/;

/** Whether an Accept header names problem details; `*` asks for nothing in particular. */
export function wantsProblem(accept: string | undefined): boolean {
  if (accept === undefined || !accept.includes(PROBLEM_TYPE)) return false;
  return accept.split(',').some((range) => range.includes(PROBLEM_TYPE) && !NEVER.test(range));
}

/** Of the bodies of a profile. */
export function contentTypeOf(profile: ErrorProfile): string {
  return `${profile === 'problem' ? PROBLEM_TYPE : 'application/json'}; charset=utf-8`;
}

export type ErrorContext = { requestId: string; nowMs: number; profile: ErrorProfile };

/** The body for `error`. No stack, query or path ever enters it: only ApiError texts do. */
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

/** With the first wrong field, for which these bodies have no other place. */
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

/** What parameters of a request were read by, and what was given. */
type Asked = Pick<FastifyRequest, 'routeOptions' | 'query' | 'params'>;

/** Turns anything thrown by `request` into an ApiError: expected refusals stay, the framework's are mapped, the rest is 500. */
export function toApiError(error: unknown, request: Asked): ApiError {
  if (error instanceof ApiError) return error;
  if (hasZodFastifySchemaValidationErrors(error)) return validationError(error, request);
  if (isFastifyError(error)) {
    const mapped = fastifyRefusal(error);
    if (mapped !== null) return mapped;
  }
  return new ApiError('internal_error', 'An unexpected error occurred', { cause: error });
}

type ZodRefusal = {
  validation: readonly ZodIssue[];
  validationContext?: string | undefined;
};
type ZodIssue = { instancePath: string; message?: string; params?: unknown };

const PLACE: Record<string, string> = { querystring: 'query', params: 'path', headers: 'header' };

function validationError(error: ZodRefusal, request: Asked): ApiError {
  const issues = error.validation.map((entry) => issueFrom(error, entry, request));
  const fields = new Set(issues.map((issue) => issue.field));
  return new ApiError('validation_error', 'Request validation failed', {
    validationErrors: issues,
    hint: `Fix ${[...fields].join(', ')} and retry.`,
  });
}

function issueFrom(
  { validationContext: context = 'body' }: ZodRefusal,
  { instancePath, message = 'Invalid value', params }: ZodIssue,
  request: Asked,
): ValidationIssue {
  const path = instancePath.split('/').filter((part) => part !== '');
  const field = [PLACE[context] ?? context, ...path].join('.');
  if (message.endsWith('received undefined')) {
    return { field, message: 'Field required', type: 'missing' };
  }
  const parameters = parametersOf(request, context);
  const [name] = path;
  if (parameters === null || name === undefined) return { field, message, type: 'invalid' };
  const given = parameters.given[name];
  const problem = parameterProblem(parameters.schema, { name, given, message, params });
  return { field, message: problem, type: 'invalid' };
}

/** Null for bodies and headers. */
function parametersOf(
  { routeOptions, query, params }: Asked,
  context: string,
): { schema: unknown; given: Record<string, unknown> } | null {
  const { schema } = routeOptions;
  if (context === 'querystring') {
    return { schema: schema?.querystring, given: query as Record<string, unknown> };
  }
  if (context === 'params') {
    return { schema: schema?.params, given: params as Record<string, unknown> };
  }
  return null;
}

function isFastifyError(error: unknown): error is FastifyError {
  return error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number';
}

/** Requests that the framework refuses before our code: by status, in our words. */
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
        hint: 'Send ids as they were given.',
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

// MERGED shared/http/error-body.ts: What is no HTTP request at all is answered with the envelope too, written by hand: there is no reply object yet.
type Refusal = { status: number; message: string; hint: string };

/** By the code of Node's parser; anything else is a malformed request. */
const REFUSALS: Record<string, Refusal> = {
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
const MALFORMED: Refusal = {
  status: 400,
  message: 'The request could not be read',
  hint: 'Send a well-formed HTTP/1.1 request.',
};

/** Answers and closes; a socket that is gone already is only dropped. */
export function answerClientError(
  error: Error & { code?: string },
  socket: Socket,
  { requestId, nowMs }: { requestId: string; nowMs: number },
): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const { status, message, hint } = REFUSALS[error.code ?? ''] ?? MALFORMED;
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
