/**
 * GET /_local/outbox: the mails of a marketplace without SMTP, tokens included, for whoever sits at this
 * machine. To everybody else there is nothing at this path.
 */
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { type Mails, OutboxMail } from './mail.service.ts';

const LOOPBACK_ADDRESS = /^(?:::ffff:)?127\.\d{1,3}\.\d{1,3}\.\d{1,3}$|^::1$/;
const LOOPBACK_HOST = /^(?:localhost|127\.\d{1,3}\.\d{1,3}\.\d{1,3}|\[::1\])(?::\d{1,5})?$/i;
/** What a proxy on this machine would add for somebody elsewhere, and a browser for another site's page. */
const SIGNS_OF_OTHERS = ['x-forwarded-for', 'x-real-ip', 'forwarded', 'via', 'origin'] as const;

/** Not to be called where mails are sent. */
export function registerOutboxRoute(api: HttpServer, mails: Pick<Mails, 'outbox'>): void {
  api.get(
    '/_local/outbox',
    {
      config: { auth: 'none' },
      schema: { tags: ['System'], response: { 200: z.array(OutboxMail) } },
    },
    (request, reply) => {
      refuseOthers(request);
      void reply.header('Cache-Control', 'no-store');
      return mails.outbox();
    },
  );
}

/** By the socket's own address: what headers say of it can be made up. */
function refuseOthers({ socket, headers }: FastifyRequest): void {
  const isLocal =
    LOOPBACK_ADDRESS.test(socket.remoteAddress ?? '') &&
    LOOPBACK_HOST.test(headers.host ?? '') &&
    SIGNS_OF_OTHERS.every((name) => headers[name] === undefined);
  if (!isLocal) throw new ApiError('not_found', 'There is nothing at this path');
}
