/**
 * Payments by Stripe: off-session charges of stored methods, and signed callbacks. Stripe's library is loaded on first
 * use.
 */
import type Stripe from 'stripe';
import { z } from 'zod';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { ChargeAnswer, OnboardingEvent, PaymentEvent, Payments } from '../ports.ts';

const TIMEOUT_MS = 20_000;
/** Maximum age of a signed callback. */
const TOLERANCE_S = 300;
const UUSD_PER_CENT = 10_000;
/** Metadata key of the top-up's id. */
const TOP_UP_ID = 'top_up_id';

export type StripeOptions = {
  secretKey: string;
  /** `whsec_…` of the endpoint that calls /payments/callback. */
  callbackSecret: string;
  clock: Clock;
  /** Default: Stripe's API. */
  api?: { host: string; port: number; protocol: 'http' | 'https' };
};

type Library = typeof import('stripe').default;

/** Creates the processor. All charges are in US dollars and whole cents. */
export function createStripePayments(options: StripeOptions): Payments {
  const { secretKey, callbackSecret, clock, api = {} } = options;
  let loading: Promise<{ library: Library; client: Stripe }> | null = null;

  async function open() {
    const { default: library } = await import('stripe');
    const client = new library(secretKey, {
      ...api,
      timeout: TIMEOUT_MS,
      // The library does not retry, because the caller retries.
      maxNetworkRetries: 0,
      telemetry: false,
    });
    return { library, client };
  }
  const loaded = () => {
    loading ??= open();
    return loading;
  };

  return {
    name: 'stripe',

    onboarding: {
      async begin({ accountId, email, payoutAccountId, origin }) {
        const { client } = await loaded();
        try {
          const id = payoutAccountId ?? (await createPayoutAccount(client, { accountId, email }));
          const link = await client.accountLinks.create({
            account: id,
            type: 'account_onboarding',
            refresh_url: origin,
            return_url: origin,
          });
          return { payoutAccountId: id, url: link.url };
        } catch (error) {
          throw unavailable(error);
        }
      },

      async isComplete(payoutAccountId) {
        const { client } = await loaded();
        const account = await client.accounts.retrieve(payoutAccountId).catch(rethrowUnavailable);
        return account.details_submitted && account.payouts_enabled;
      },
    },

    async attach({ accountId, customerId, paymentMethodId }) {
      const { library, client } = await loaded();
      try {
        const customer =
          customerId ??
          (
            await client.customers.create(
              { metadata: { account_id: accountId } },
              { idempotencyKey: `customer-${accountId}` },
            )
          ).id;
        await client.paymentMethods.attach(paymentMethodId, { customer });
        return { customerId: customer };
      } catch (error) {
        const { errors } = library;
        const isRefused =
          error instanceof errors.StripeInvalidRequestError ||
          error instanceof errors.StripeCardError;
        if (!isRefused) throw unavailable(error);
        throw new ApiError('bad_request', 'The payment processor rejected this payment method', {
          hint: 'Add the method again, or use another one.',
          cause: error,
        });
      }
    },

    async charge({ key, customerId, paymentMethodId, amountUusd }) {
      const { library, client } = await loaded();
      try {
        const intent = await client.paymentIntents.create(
          {
            amount: centsOf(amountUusd),
            currency: 'usd',
            ...(customerId === null ? {} : { customer: customerId }),
            payment_method: paymentMethodId,
            confirm: true,
            off_session: true,
            metadata: { [TOP_UP_ID]: key },
          },
          { idempotencyKey: key },
        );
        return answerOf(intent);
      } catch (error) {
        const { errors } = library;
        if (error instanceof errors.StripeCardError) {
          const externalId = error.payment_intent?.id ?? null;
          const reason = error.decline_code || error.code || 'card declined';
          return { state: 'declined', externalId, reason };
        }
        // The customer has detached the method, or the method never belonged to this customer. A retry cannot succeed.
        if (error instanceof errors.StripeInvalidRequestError) {
          return { state: 'declined', externalId: null, reason: error.code ?? 'refused' };
        }
        throw unavailable(error);
      }
    },

    async findCharge(externalId) {
      const { client } = await loaded();
      return answerOf(await client.paymentIntents.retrieve(externalId).catch(rethrowUnavailable));
    },

    async parseCallback({ body, signature }) {
      const { client, library } = await loaded();
      const text = Buffer.from(body);
      try {
        const event = await client.webhooks.constructEventAsync(
          ...[text, signature, callbackSecret, TOLERANCE_S, undefined, clock.now()],
        );
        return eventOf(event);
      } catch (error) {
        if (!(error instanceof library.errors.StripeSignatureVerificationError)) throw error;
        throw new ApiError('unauthorized', 'The request is not signed by the payment processor', {
          hint: 'Check the secret of the callback endpoint.',
        });
      }
    },
  };
}

async function createPayoutAccount(
  client: Stripe,
  { accountId, email }: { accountId: string; email: string },
): Promise<string> {
  const account = await client.accounts.create(
    {
      type: 'express',
      email,
      capabilities: { transfers: { requested: true } },
      metadata: { account_id: accountId },
    },
    { idempotencyKey: `payout-account-${accountId}` },
  );
  return account.id;
}

function centsOf(amountUusd: number): number {
  if (amountUusd % UUSD_PER_CENT !== 0) throw new RangeError('a charge must be in whole cents');
  return amountUusd / UUSD_PER_CENT;
}

function answerOf({ id, status, last_payment_error: problem }: Stripe.PaymentIntent): ChargeAnswer {
  if (status === 'succeeded') return { state: 'succeeded', externalId: id };
  if (status === 'processing') return { state: 'pending', externalId: id };
  const reason = status === 'requires_action' ? 'the bank requires the payer’s consent' : null;
  const code = problem?.decline_code ?? problem?.code;
  return { state: 'declined', externalId: id, reason: reason ?? code ?? 'declined' };
}

/**
 * Members that are read from callbacks. The API version of the callback endpoint may differ from the version that the
 * library's types describe.
 */
const Metadata = z.record(z.string(), z.string()).nullish();
const Problem = z.object({ code: z.string().nullish(), decline_code: z.string().nullish() });
const IntentId = z
  .union([z.string(), z.object({ id: z.string() }).transform(({ id }) => id)])
  .nullish();
const Cents = z.int().min(0);
const Intent = z.object({
  id: z.string(),
  metadata: Metadata,
  last_payment_error: Problem.nullish(),
});
const Charge = z.object({ payment_intent: IntentId, amount_refunded: Cents, metadata: Metadata });
const PayoutAccount = z.object({
  id: z.string(),
  details_submitted: z.boolean(),
  payouts_enabled: z.boolean(),
});
const Dispute = z.object({ payment_intent: IntentId, amount: Cents });

/** Returns null for events that change neither a charge nor a payout account. */
function eventOf(event: {
  type: string;
  data: { object: unknown };
}): PaymentEvent | OnboardingEvent | null {
  const { object } = event.data;
  switch (event.type) {
    case 'payment_intent.succeeded': {
      const { id, metadata } = Intent.parse(object);
      return about(id, metadata, { kind: 'succeeded' });
    }
    case 'payment_intent.payment_failed': {
      const { id, metadata, last_payment_error: problem } = Intent.parse(object);
      const reason = problem?.decline_code ?? problem?.code ?? 'declined';
      return about(id, metadata, { kind: 'declined', reason });
    }
    case 'charge.refunded': {
      const { payment_intent: id, metadata, amount_refunded: cents } = Charge.parse(object);
      return about(id, metadata, { kind: 'refunded', totalUusd: cents * UUSD_PER_CENT });
    }
    case 'charge.dispute.created': {
      const { payment_intent: id, amount: cents } = Dispute.parse(object);
      return about(id, null, { kind: 'disputed', amountUusd: cents * UUSD_PER_CENT });
    }
    case 'account.updated': {
      const {
        id,
        details_submitted: isSubmitted,
        payouts_enabled: isPaid,
      } = PayoutAccount.parse(object);
      return isSubmitted && isPaid ? { onboarded: id } : null;
    }
    default:
      return null;
  }
}

function about(
  externalId: string | null | undefined,
  metadata: z.output<typeof Metadata>,
  change: PaymentEvent['change'],
): PaymentEvent | null {
  if (externalId == null) return null;
  return { externalId, key: metadata?.[TOP_UP_ID] ?? null, change };
}

function rethrowUnavailable(error: unknown): never {
  throw unavailable(error);
}

function unavailable(cause: unknown): ApiError {
  return new ApiError('upstream_unavailable', 'The payment processor does not respond', { cause });
}
