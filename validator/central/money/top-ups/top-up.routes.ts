/** GET and PUT /users/me/auto-top-up, and POST /payments/callback for the payment processor. */
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { RecordRefusal } from '../../accounts/api-keys/budget-refusal.service.ts';
import { userOf } from '../../platform/identity.ts';
import type { PaymentEvent, Payments } from '../../platform/ports.ts';
import { AUTO_TOP_UP_FIELD_NAMES, AutoTopUp, AutoTopUpUpdateDto } from './auto-top-up.schemas.ts';
import type { AutoTopUps } from './auto-top-up.service.ts';

const tags = ['Balance'];
const config = { auth: 'user' } as const;
/** A callback contains a complete object of the processor. */
const CALLBACK_LIMIT_BYTES = 256 * 1024;

export function registerAutoTopUpRoutes(
  api: HttpServer,
  autoTopUps: AutoTopUps,
  recordRefusal: RecordRefusal,
): void {
  api.get(
    '/users/me/auto-top-up',
    {
      config,
      schema: {
        tags,
        summary: 'Read the automatic top-up',
        description:
          'Returns the settings and the state of the last charge; null if the account never set up the automatic top-up.',
        response: { 200: AutoTopUp.nullable() },
      },
    },
    async (request, reply) =>
      // Fastify would send an empty body for null.
      (await autoTopUps.get(userOf(request))) ??
      reply.type('application/json; charset=utf-8').serializer(JSON.stringify).send(null),
  );
  api.put(
    '/users/me/auto-top-up',
    {
      config: { ...config, fieldNames: AUTO_TOP_UP_FIELD_NAMES },
      schema: {
        tags,
        summary: 'Set up the automatic top-up',
        description:
          'Stores the given members. If the balance is below the threshold, a charge follows within a minute.',
        errors: {
          API_KEY_BUDGET_EXCEEDED:
            'a key with a budget may only disable the top-up, because its charges are unlimited',
          bad_request:
            'no payment method although enabled, a monthly limit below one charge, a method with a disputed charge, or a marketplace that accepts no payments',
        },
        retry: 'Safe: a repeat stores the same values again and causes no second charge.',
        body: AutoTopUpUpdateDto,
        response: { 200: AutoTopUp },
      },
    },
    async (request) => {
      try {
        return await autoTopUps.change(userOf(request), request.body);
      } catch (error) {
        await recordRefusal(request, error);
        throw error;
      }
    },
  );
}

const Received = z.object({ received: z.literal(true) });

/** Registers the callback. Call it for the origin, not for /api, and only if the processor sends callbacks. */
export function registerPaymentCallback(
  origin: HttpServer,
  parse: NonNullable<Payments['parseCallback']>,
  {
    applyEvent,
    completeOnboarding,
  }: {
    applyEvent(event: PaymentEvent): Promise<boolean>;
    completeOnboarding(payoutAccountId: string): Promise<boolean>;
  },
): void {
  origin.post(
    '/payments/callback',
    {
      config: { auth: 'none' },
      bodyLimit: CALLBACK_LIMIT_BYTES,
      schema: { response: { 200: Received } },
    },
    async (request) => {
      const event = await parse({ body: bodyOf(request), signature: signatureOf(request) });
      // Unknown charges and accounts are acknowledged too, because the processor would otherwise repeat the event for
      // days.
      if (event !== null && 'onboarded' in event) {
        const { onboarded: id } = event;
        if (await completeOnboarding(id)) return { received: true as const };
        request.log.warn({ external_id: id }, 'payment callback for an unknown payout account');
      } else if (event !== null && !(await applyEvent(event))) {
        const { externalId } = event;
        request.log.warn({ external_id: externalId }, 'payment callback for an unknown charge');
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
