/** Routes of accounts: /users, and sign-up and verification below /auth. */
import type { HttpServer } from '#shared/http/server.ts';
import { actorOf, userAgentOf, userOf } from '../../platform/identity.ts';
import {
  ClientAddress,
  CreateUserDto,
  LoginResponse,
  LoginUserDto,
  MessageResponse,
  ReferralPayoutMethodUpdateDto,
  RequestResetPasswordDto,
  ResendVerifyEmailDto,
  ResetPasswordDto,
  SignUpResponse,
  UpdateUserDto,
  User,
  UserDeleted,
  UserPreference,
  UserSearchQuery,
  UserSearchResponse,
  VerifyEmailDto,
} from './account.schemas.ts';
import type { Accounts } from './account.service.ts';
import type { AccountRemoval } from './account-removal.ts';
import type { AccountUpdate } from './account-update.ts';
import { normalEmail } from './email-address.ts';
import type { EmailVerification } from './email-verification.ts';
import type { PasswordReset } from './password-reset.ts';
import type { SetReferralPayout } from './referral-payout.ts';

const tags = ['Users'];

export type AccountRoutesDeps = {
  accounts: Accounts;
  update: AccountUpdate;
  remove: AccountRemoval;
  verification: EmailVerification;
  reset: PasswordReset;
  setReferralPayout: SetReferralPayout;
};

export function registerAccountRoutes(api: HttpServer, deps: AccountRoutesDeps): void {
  registerProfileRoutes(api, deps);
  registerMailedTokenRoutes(api, deps);
  const { accounts } = deps;
  for (const path of ['/users', '/auth/signup']) {
    api.post(
      path,
      {
        config: { auth: 'none', limit: 'login' },
        schema: {
          tags,
          summary: 'Create an account',
          description:
            'Creates an account with one API key and sends a mail to confirm the address. `/users` and `/auth/signup` are the same operation. The sign-up credit is granted with the confirmed address.',
          errors: {
            bad_request:
              'the address has an account (`detail` repeats the message), or the referral code is unknown',
            rate_limited: 'too many attempts from this address',
          },
          retry:
            'Safe: a repeat with the same address is refused and creates no second account. Only the first answer contains the API key; log in to create another key.',
          body: CreateUserDto,
          response: { 200: SignUpResponse },
        },
      },
      (request) => accounts.signUp(request.body),
    );
  }
  api.post(
    '/users/login',
    {
      config: { auth: 'none', limit: 'login' },
      schema: {
        tags,
        summary: 'Log in',
        description:
          'Checks the password and returns a session token for 7 days. There is no route to renew it.',
        errors: {
          unauthorized: 'the address or the password is wrong',
          rate_limited: 'too many attempts from this address or for this account',
        },
        retry: 'Safe: every log-in returns a new token; earlier tokens stay valid.',
        body: LoginUserDto,
        response: { 200: LoginResponse },
      },
    },
    (request) => accounts.logIn(request.body, userAgentOf(request)),
  );
  api.get(
    '/users/get-ip',
    {
      config: { auth: 'none' },
      schema: {
        tags,
        summary: "Read the caller's IP address",
        description:
          'Returns the address from which the request came; behind a trusted proxy, the address that the proxy forwards.',
        response: { 200: ClientAddress },
      },
    },
    async (request) => ({ ip: request.ip }),
  );
  api.get(
    '/users/search',
    {
      config: { auth: 'none', limit: 'search' },
      schema: {
        tags,
        summary: 'Check whether an account exists',
        description:
          'Returns whether an account has exactly this address, for example before a transfer of credit. Nothing else of the account is returned.',
        errors: {
          rate_limited: 'the limit of this route is strict, to prevent the collection of addresses',
        },
        querystring: UserSearchQuery,
        response: { 200: UserSearchResponse },
      },
    },
    (request) => accounts.exists(request.query.email),
  );
}

function registerProfileRoutes(
  api: HttpServer,
  { accounts, update, remove, setReferralPayout }: AccountRoutesDeps,
): void {
  api.get(
    '/users/me',
    {
      config: { auth: 'user' },
      schema: {
        tags,
        summary: 'Read the account',
        description:
          'Returns the account with its balance, the amount that is held for pods, the present cost per hour and the time at which the balance will be spent.',
        response: { 200: User },
      },
    },
    (request) => accounts.me(userOf(request)),
  );
  api.put(
    '/users/me',
    {
      config: { auth: 'user' },
      schema: {
        tags,
        summary: 'Change the account',
        description:
          'Changes the given members. Address and password need the present password and a session token. A changed address counts only after it is confirmed: a mail with a token is sent to it, and until POST /auth/verify-email the account keeps its present address, which receives a notice. A newer change, a reset or change of the password, and a request with the present address and `current_password` cancel the pending change.',
        errors: {
          forbidden:
            'an API key tried to change address or password, or the present password is wrong',
          template_not_found:
            'the default template does not exist or is not visible to the account',
          conflict: 'another request changed the account at the same time',
          bad_request: 'another account has the new address',
        },
        retry:
          'Safe: a repeat stores the same values again; a repeated change of the password fails, because `current_password` is no longer valid.',
        body: UpdateUserDto,
        response: { 200: User },
      },
    },
    (request) => update(userOf(request), request.body, actorOf(request)),
  );
  api.get(
    '/users/me/preference',
    {
      config: { auth: 'user' },
      schema: {
        tags,
        summary: 'Read the defaults for rentals',
        description: 'Returns the default template and the default hours until removal.',
        response: { 200: UserPreference },
      },
    },
    (request) => accounts.preference(userOf(request)),
  );
  api.delete(
    '/users/me/preference/default-template',
    {
      config: { auth: 'user' },
      schema: {
        tags,
        summary: 'Clear the default template',
        description: 'Removes the default template, so that a rental has to name a template.',
        retry: 'Safe: a repeat changes nothing.',
        response: { 200: UserPreference },
      },
    },
    (request) => accounts.clearDefaultTemplate(userOf(request)),
  );
  api.put(
    '/users/me/referral-payout-method',
    {
      config: { auth: 'user' },
      schema: {
        tags,
        summary: 'Choose how referral shares are paid',
        description: 'Stores the method for later payouts. A payout in progress keeps its method.',
        errors: {
          bad_request:
            '`crypto` without address and network, or `stripe_connect` before the onboarding of the payout account is complete',
        },
        retry: 'Safe: a repeat stores the same values again.',
        body: ReferralPayoutMethodUpdateDto,
        response: { 200: User },
      },
    },
    (request) => setReferralPayout(userOf(request), request.body, actorOf(request)),
  );
  api.delete(
    '/users/me',
    {
      config: { auth: 'session' },
      schema: {
        tags,
        summary: 'Delete the account',
        description:
          'Deletes the account with its keys, templates, volumes and backups, and ends its sessions. The ledger retains its entries; the remaining balance can no longer be spent.',
        errors: { bad_request: 'the account still has pods; the message names them' },
        retry: 'Safe: a repeat returns 401, because the session has ended.',
        response: { 200: UserDeleted },
      },
    },
    (request) => remove(userOf(request).accountId, actorOf(request)),
  );
}

/** Routes of address verification and password reset, which need no credential. */
function registerMailedTokenRoutes(
  api: HttpServer,
  { verification, reset }: AccountRoutesDeps,
): void {
  // Limited like a log-in: each request may send a mail or guess a token.
  const config = { auth: 'none', limit: 'login' } as const;
  const response = { 200: MessageResponse };
  api.post(
    '/auth/resend-verify-email',
    {
      config,
      schema: {
        tags,
        summary: 'Send the mail to confirm an address again',
        description:
          'Sends a new mail if an account has the address and the address is not confirmed. The answer is the same in every case, so that it does not reveal which accounts exist.',
        errors: { rate_limited: 'too many requests from this address' },
        retry: 'Safe: a repeat sends another mail.',
        body: ResendVerifyEmailDto,
        response,
      },
    },
    (request) => verification.resend(normalEmail(request.body.email)),
  );
  api.post(
    '/auth/verify-email',
    {
      config,
      schema: {
        tags,
        summary: 'Confirm an e-mail address',
        description:
          'Marks the address as confirmed and grants the sign-up credit, once per account. For a requested change, also makes the address the address of the account.',
        errors: {
          bad_request:
            'the token is unknown, used, expired or belongs to a cancelled change, or another account has the address',
        },
        retry: 'Safe: a repeat is refused, because a token works once.',
        body: VerifyEmailDto,
        response,
      },
    },
    (request) => verification.verify(request.body.token, actorOf(request)),
  );
  api.post(
    '/users/request-reset-password',
    {
      config,
      schema: {
        tags,
        summary: 'Send a mail to reset the password',
        description:
          'Sends a mail with a token that is valid for an hour. The answer is the same for unknown addresses; the work begins after the answer, so that the time of the answer is the same, too.',
        errors: { rate_limited: 'too many requests from this address' },
        retry: 'Safe: a repeat sends another mail.',
        body: RequestResetPasswordDto,
        response,
      },
    },
    (request) => reset.request(normalEmail(request.body.email)),
  );
  api.post(
    '/users/reset-password',
    {
      config,
      schema: {
        tags,
        summary: 'Set a new password with a mailed token',
        description:
          'Replaces the password, ends all sessions of the account and cancels a requested change of the address.',
        errors: { bad_request: 'the token is unknown, used or older than an hour' },
        retry: 'Safe: a repeat is refused, because a token works once.',
        body: ResetPasswordDto,
        response,
      },
    },
    (request) => reset.reset(request.body, actorOf(request)),
  );
}
