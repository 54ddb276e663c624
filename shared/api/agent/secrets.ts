import type { FastifyRequest } from 'fastify';
import type { HttpServer } from '../../http/server.ts';
import { ApiError } from '../../runtime/errors.ts';
import { isLoopback } from '../../tls/tls-mode.ts';

/** What of a command nobody on the way may read (validator reference 2.4). Pure. */

/** Members of bodies, at any depth, that are secret or grant something as soon as they hold anything. */
const SECRET_FIELDS: ReadonlySet<string> = new Set([
  'environment',
  'registry_auth',
  'ssh_public_keys',
  'repository',
  'password',
  'token',
]);
/** Deeper than any schema of ours. */
const MAX_DEPTH = 8;

/** The names of such members of `body`, each once. */
export function secretFieldsIn(body: unknown): string[] {
  const found = new Set<string>();
  collect(body, found, MAX_DEPTH);
  return [...found];
}

/** What such members hold. */
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
    if (SECRET_FIELDS.has(name) && holdsSomething(member)) found.add(name);
    else collect(member, found, depth - 1);
  }
}

function holdsSomething(value: unknown): boolean {
  if (value === null || value === undefined || value === '') return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}

/** Call after authentication was added and before any route is: nothing of the request has had effect then. */
export function rejectSecretsOverHttp(server: HttpServer): void {
  server.addHook('preValidation', async (request) => {
    if (isPrivate(request)) return;
    const secrets = isTerminal(request) ? ['terminal'] : secretFieldsIn(request.body);
    if (secrets.length === 0) return;
    throw new ApiError('tls_required', `Not taken over plain HTTP: ${secrets.join(', ')}`, {
      details: { fields: secrets },
    });
  });
}

/** No header is asked: a proxy's, or anybody's, says nothing of the way to it. */
function isPrivate({ raw: { socket } }: FastifyRequest): boolean {
  return 'encrypted' in socket || isLoopback(socket.remoteAddress ?? '');
}

/** What is typed there is as secret as anything. */
function isTerminal(request: FastifyRequest): boolean {
  return request.routeOptions.url?.endsWith('/exec') === true;
}
