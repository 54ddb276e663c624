/** Refuses what nobody may read over plain HTTP from another machine, by the socket it came on. */
import type { FastifyRequest } from 'fastify';
import type { HttpServer } from '../../http/server.ts';
import { ApiError } from '../../runtime/errors.ts';
import { isLoopback } from '../../tls/loopback.ts';
import { secretsIn } from './secrets.ts';

/** Call after authentication was added and before any route is: nothing of the request has had effect then. */
export function refuseSecretsInClear(server: HttpServer): void {
  server.addHook('preValidation', async (request) => {
    if (isPrivate(request)) return;
    const secrets = isTerminal(request) ? ['terminal'] : secretsIn(request.body);
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
