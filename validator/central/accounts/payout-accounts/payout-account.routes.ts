/** GET and POST /users/me/stripe-connect. */
import type { HttpServer } from '#shared/http/server.ts';
import { actorOf, userOf } from '../../platform/identity.ts';
import { PayoutAccount } from './payout-account.schemas.ts';
import type { PayoutAccounts } from './payout-account.service.ts';

const tags = ['Users'];
const config = { auth: 'user' } as const;
const response = { 200: PayoutAccount };

/** If `publicOrigin` is null, the origin of the request is used. */
export function registerPayoutAccountRoutes(
  api: HttpServer,
  { accounts, publicOrigin }: { accounts: PayoutAccounts; publicOrigin: string | null },
): void {
  api.get(
    '/users/me/stripe-connect',
    {
      config,
      schema: {
        tags,
        summary: 'Read the payout account',
        description:
          'Returns the account at the payment processor to which referral shares can be paid. Until the onboarding is complete, every read queries the processor.',
        errors: { upstream_unavailable: 'the payment processor does not answer' },
        response,
      },
    },
    (request) => accounts.get(userOf(request)),
  );
  api.post(
    '/users/me/stripe-connect',
    {
      config,
      schema: {
        tags,
        summary: 'Begin the onboarding for payouts',
        description:
          'Creates an account at the payment processor, or continues its onboarding, and returns the page on which the owner completes it. Afterwards `stripe_connect` is a valid referral payout method.',
        errors: {
          bad_request: 'the payment processor of this marketplace cannot pay accounts',
          upstream_unavailable: 'the payment processor does not answer',
        },
        retry: 'Safe: a repeat continues the same onboarding.',
        response,
      },
    },
    (request) => {
      const origin = publicOrigin ?? `${request.protocol}://${request.host}`;
      return accounts.begin(userOf(request), actorOf(request), origin);
    },
  );
}
