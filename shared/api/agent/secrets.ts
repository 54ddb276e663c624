/** Fields of requests that must not travel over plain HTTP, and the rejection of such requests. */
import type { FastifyRequest } from 'fastify';
import type { HttpServer } from '../../http/server.ts';
import { ApiError } from '../../runtime/errors.ts';
import { isLoopback } from '../../tls/tls-mode.ts';

/** Members of request bodies, at any depth, whose values are secret or grant access. */
const SECRET_FIELDS: ReadonlySet<string> = new Set([
  'environment',
  'registry_auth',
  'secrets',
  'ssh_public_keys',
  'repository',
  'password',
  'token',
]);
/** Depth to which bodies are searched; every schema of the interface is less deep. */
const MAX_DEPTH = 8;

/** Returns the names of non-empty secret members of `body`, each once. */
export function secretFieldsIn(body: unknown): string[] {
  const found = new Set<string>();
  collect(body, found, MAX_DEPTH);
  return [...found];
}

/** Returns the values of all secret members of `body`. */
export function secretValuesIn(body: unknown): unknown[] {
  return valuesIn(body, MAX_DEPTH);
}

function valuesIn(value: unknown, depth: number): unknown[] {
  if (typeof value !== 'object' || value === null || depth === 0) return [];
  return Object.entries(value).flatMap(([name, member]) =>
    SECRET_FIELDS.has(name) ? [member] : valuesIn(member, depth - 1),
  );
}

function collect(value: unknown, found: Set<string>, depth: number): void {
  if (typeof value !== 'object' || value === null || depth === 0) return;
  for (const [name, member] of Object.entries(value)) {
    if (SECRET_FIELDS.has(name) && isNonEmpty(member)) found.add(name);
    else collect(member, found, depth - 1);
  }
}

function isNonEmpty(value: unknown): boolean {
  if (value === null || value === undefined || value === '') return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}

/**
 * Adds a hook that rejects requests with secrets that arrive over plain HTTP from another machine. Call after adding
 * authentication and before adding routes, so that a rejected request has had no effect.
 */
export function rejectSecretsOverHttp(server: HttpServer): void {
  server.addHook('preValidation', async (request) => {
    if (isPrivate(request)) return;
    const secrets = isTerminal(request) ? ['terminal'] : secretFieldsIn(request.body);
    if (secrets.length === 0) return;
    throw new ApiError('tls_required', `Not accepted over plain HTTP: ${secrets.join(', ')}`, {
      details: { fields: secrets },
    });
  });
}

/** Uses the socket only: forwarding headers do not prove how the request was sent. */
function isPrivate({ raw: { socket } }: FastifyRequest): boolean {
  return 'encrypted' in socket || isLoopback(socket.remoteAddress ?? '');
}

/** Returns true for a terminal's WebSocket, whose input counts as secret. */
function isTerminal(request: FastifyRequest): boolean {
  return request.routeOptions.url?.endsWith('/exec') === true;
}
