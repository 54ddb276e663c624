/** /users/me/auto-top-up (contract 9.2), and where the payment processor calls back. */
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { userOf } from '../../platform/identity.ts';
import type { PaymentNews, Payments } from '../../platform/ports.ts';
import { AutoTopUp, AutoTopUpUpdateDto } from './auto-top-up.schemas.ts';
import type { AutoTopUps } from './auto-top-up.service.ts';

const tags = ['Balance'];
const config = { auth: 'user' } as const;
/** Callbacks carry a whole object of the processor's. */
const CALLBACK_LIMIT_BYTES = 256 * 1024;

/** Registers them. */
export function registerAutoTopUpRoutes(api: HttpServer, autoTopUps: AutoTopUps): void {
  api.get(
    '/users/me/auto-top-up',
    { config, schema: { tags, response: { 200: AutoTopUp.nullable() } } },
    async (request, reply) =>
      // The framework takes null for no body; every answer of ours has one.
      (await autoTopUps.get(userOf(request))) ??
      reply.type('application/json; charset=utf-8').serializer(JSON.stringify).send(null),
  );
  api.put(
    '/users/me/auto-top-up',
    { config, schema: { tags, body: AutoTopUpUpdateDto, response: { 200: AutoTopUp } } },
    (request) => autoTopUps.change(userOf(request), request.body),
  );
}

const Received = z.object({ received: z.literal(true) });

/** At the origin: it is no part of the interface. Only for a processor that calls back. */
export function registerPaymentCallback(
  origin: HttpServer,
  read: NonNullable<Payments['read']>,
  hear: (news: PaymentNews) => Promise<boolean>,
): void {
  origin.post(
    '/payments/callback',
    {
      config: { auth: 'none' },
      bodyLimit: CALLBACK_LIMIT_BYTES,
      schema: { response: { 200: Received } },
    },
    async (request) => {
      const news = await read({ body: bodyOf(request), signature: signatureOf(request) });
      // What is not ours is taken all the same: refused, it would come for days.
      if (news !== null && !(await hear(news))) {
        request.log.warn({ external_id: news.externalId }, 'word of an unknown charge');
      }
      return { received: true as const };
    },
  );
}

function bodyOf({ rawBody }: FastifyRequest): Uint8Array {
  if (rawBody !== null) return rawBody;
  throw new ApiError('bad_request', 'The callback has no body');
}

function signatureOf({ headers }: FastifyRequest): string {
  const { 'stripe-signature': signature } = headers;
  return typeof signature === 'string' ? signature : '';
}
