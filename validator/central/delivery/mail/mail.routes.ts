/**
 * GET /_local/outbox: the mails of a marketplace without a mail server, including their tokens, for clients on this
 * host. Other clients receive 404.
 */
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { type Mails, OutboxMail } from './mail.service.ts';

const LOOPBACK_ADDRESS = /^(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$|^::1$/;
const LOOPBACK_HOST = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(?::\d{1,5})?$/i;
/**
 * Headers of a request that does not come directly from a client on this host: a proxy on this host adds some for a
 * remote client, and a browser adds others for a page of another site.
 */
const FOREIGN_HEADERS = ['x-forwarded-for', 'x-real-ip', 'forwarded', 'via', 'origin'] as const;

/** Registers the route. Call it only if no mailer is configured. */
export function registerOutboxRoute(api: HttpServer, mails: Pick<Mails, 'outbox'>): void {
  api.get(
    '/_local/outbox',
    {
      config: { auth: 'none' },
      schema: { tags: ['System'], response: { 200: z.array(OutboxMail) } },
    },
    (request, reply) => {
      requireLocal(request);
      void reply.header('Cache-Control', 'no-store');
      return mails.outbox();
    },
  );
}

/** Rejects clients that are not on this host. Checks the socket's address, because headers can be forged. */
function requireLocal({ socket, headers }: FastifyRequest): void {
  const isLocal =
    LOOPBACK_ADDRESS.test(socket.remoteAddress ?? '') &&
    LOOPBACK_HOST.test(headers.host ?? '') &&
    FOREIGN_HEADERS.every((name) => headers[name] === undefined);
  if (!isLocal) throw new ApiError('not_found', 'There is nothing at this path');
}
