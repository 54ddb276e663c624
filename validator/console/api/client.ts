/** Typed client of the API and the portal: `await api('GET /pods/{id}', { params: { id } })`. */
import type { ApiOperations } from './api.gen.ts';
import { failureFrom, isSessionEnd, ofSession, unreachable } from './failure.ts';
import type { LocalOperations } from './local-operations.ts';
import type { PortalOperations } from './portal.gen.ts';

type Operation = { params: object; query: object; body: unknown; response: unknown };

/** Members of a request that an operation needs; those that it does not have may be left out. */
export type RequestOf<Of extends Operation> = Needed<'params', Of['params']> &
  Needed<'query', Of['query']> &
  (Of['body'] extends undefined ? { body?: undefined } : { body: Of['body'] }) & {
    /** Ends the request. */
    signal?: AbortSignal | undefined;
    /** Makes a repeat of the request safe. */
    idempotencyKey?: string | undefined;
  };

type Needed<Name extends string, Members extends object> = [keyof Members] extends [never]
  ? { [key in Name]?: undefined }
  : Members extends Record<string, never>
    ? { [key in Name]?: undefined }
    : Partial<Members> extends Members
      ? { [key in Name]?: Members }
      : { [key in Name]: Members };

/** Calls an operation; rejects with an `ApiFailure`. */
export type Call<Operations extends { [key in keyof Operations]: Operation }> = <
  Name extends keyof Operations & string,
>(
  operation: Name,
  ...request: Record<string, never> extends RequestOf<Operations[Name]>
    ? [request?: RequestOf<Operations[Name]>]
    : [request: RequestOf<Operations[Name]>]
) => Promise<Operations[Name]['response']>;

export type ClientPorts = {
  fetch: typeof fetch;
  /** Origin of the API; empty in a browser, which requests its own origin. */
  origin: string;
  /** Session token; null without a session. */
  token(): string | null;
  /** Called with the header `Date` of each response. */
  onDate?(text: string | null): void;
  /** Called with the time of each response of a simulated marketplace. */
  onSimulatedTime?(text: string): void;
  /** Called for a response 401 or 419 to a request with `token`. */
  onExpired?(token: string): void;
};

export type Client = ReturnType<typeof createClient>;

/** Creates the client of one kind of session. */
export function createClient(ports: ClientPorts) {
  return {
    api: callBelow<ApiOperations>('/api', ports),
    portal: callBelow<PortalOperations>('/portal', ports),
    /** Calls the routes that only a simulated marketplace has. */
    local: callBelow<LocalOperations>('/api', ports),
    /**
     * Sends a request and returns its successful response unread, for streams and files. `path` is from the origin. The
     * request has no session if its `credentials` are `omit`.
     */
    open: (path: string, init: RequestInit = {}) => send(ports, path, init),
  };
}

type AnyRequest = {
  params?: Record<string, unknown>;
  query?: Record<string, unknown>;
  body?: unknown;
  signal?: AbortSignal;
  idempotencyKey?: string;
};

function callBelow<Operations extends { [key in keyof Operations]: Operation }>(
  prefix: string,
  ports: ClientPorts,
): Call<Operations> {
  return async (operation, ...[request]) => {
    const { params, query, body, signal, idempotencyKey } = (request ?? {}) as AnyRequest;
    const [method = 'GET', template = ''] = operation.split(' ');
    const headers: Record<string, string> = {};
    if (body !== undefined) headers['Content-Type'] = 'application/json';
    if (idempotencyKey !== undefined) headers['Idempotency-Key'] = idempotencyKey;
    const response = await send(ports, prefix + fillPath(template, params) + queryOf(query), {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
    // Cast: the server validates its responses with the schemas from which the types were generated.
    return (await readJson(response)) as Operations[typeof operation]['response'];
  };
}

/** With problem details, errors of all routes have one form, which includes code and hint. */
const ACCEPTED = 'application/json, application/problem+json';

async function send(ports: ClientPorts, path: string, init: RequestInit): Promise<Response> {
  const token = init.credentials === 'omit' ? null : ports.token();
  const headers = new Headers(init.headers);
  if (!headers.has('Accept')) headers.set('Accept', ACCEPTED);
  if (token !== null) headers.set('Authorization', `Bearer ${token}`);
  let response: Response;
  try {
    response = await ports.fetch(ports.origin + path, { ...init, headers });
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw unreachable();
  }
  ports.onDate?.(response.headers.get('Date'));
  const simulatedTime = response.headers.get('X-Simulated-Time');
  if (simulatedTime !== null) ports.onSimulatedTime?.(simulatedTime);
  if (response.ok) return response;
  const body: unknown = await response.json().catch(() => null);
  const failure = failureFrom(response.status, body, response.headers.get('X-Request-Id'));
  if (!isSessionEnd(response.status) || token === null) throw failure;
  ports.onExpired?.(token);
  throw ofSession(failure, token);
}

async function readJson(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    throw failureFrom(
      response.status,
      { detail: 'The server sent an answer that is not JSON' },
      response.headers.get('X-Request-Id'),
    );
  }
}

/** Replaces `{name}` in a path template. Throws a TypeError for a missing parameter. */
export function fillPath(template: string, params: Record<string, unknown> = {}): string {
  return template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name];
    if (value === undefined) throw new TypeError(`missing path parameter ${name}`);
    return encodeURIComponent(String(value));
  });
}

/** Returns `?a=1&b=2`, or an empty string. Leaves out undefined, null and empty values. */
export function queryOf(query: Record<string, unknown> = {}): string {
  const entries = Object.entries(query)
    .filter(([, value]) => value !== undefined && value !== null && value !== '')
    .map(([name, value]): [string, string] => [name, String(value)]);
  return entries.length === 0 ? '' : `?${new URLSearchParams(entries)}`;
}
