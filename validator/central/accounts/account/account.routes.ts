/** Routes of accounts: /users and, below /auth, sign-up and verification. */
import type { HttpServer } from '#shared/http/server.ts';
import { actorOf, userOf } from '../../platform/identity.ts';
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
import { type Accounts, normalEmail } from './account.service.ts';
import type { AccountRemoval } from './account-removal.ts';
import type { AccountUpdate } from './account-update.ts';
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
        schema: { tags, body: CreateUserDto, response: { 200: SignUpResponse } },
      },
      (request) => accounts.signUp(request.body),
    );
  }
  api.post(
    '/users/login',
    {
      config: { auth: 'none', limit: 'login' },
      schema: { tags, body: LoginUserDto, response: { 200: LoginResponse } },
    },
    (request) => accounts.logIn(request.body),
  );
  api.get(
    '/users/get-ip',
    { config: { auth: 'none' }, schema: { tags, response: { 200: ClientAddress } } },
    async (request) => ({ ip: request.ip }),
  );
  api.get(
    '/users/search',
    {
      config: { auth: 'none', limit: 'search' },
      schema: { tags, querystring: UserSearchQuery, response: { 200: UserSearchResponse } },
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
    { config: { auth: 'user' }, schema: { tags, response: { 200: User } } },
    (request) => accounts.me(userOf(request)),
  );
  api.put(
    '/users/me',
    {
      config: { auth: 'user' },
      schema: { tags, body: UpdateUserDto, response: { 200: User } },
    },
    (request) => update(userOf(request), request.body, actorOf(request)),
  );
  api.get(
    '/users/me/preference',
    { config: { auth: 'user' }, schema: { tags, response: { 200: UserPreference } } },
    (request) => accounts.preference(userOf(request)),
  );
  api.delete(
    '/users/me/preference/default-template',
    { config: { auth: 'user' }, schema: { tags, response: { 200: UserPreference } } },
    (request) => accounts.clearDefaultTemplate(userOf(request)),
  );
  api.put(
    '/users/me/referral-payout-method',
    {
      config: { auth: 'user' },
      schema: { tags, body: ReferralPayoutMethodUpdateDto, response: { 200: User } },
    },
    (request) => setReferralPayout(userOf(request), request.body, actorOf(request)),
  );
  api.delete(
    '/users/me',
    { config: { auth: 'session' }, schema: { tags, response: { 200: UserDeleted } } },
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
    { config, schema: { tags, body: ResendVerifyEmailDto, response } },
    (request) => verification.resend(normalEmail(request.body.email)),
  );
  api.post(
    '/auth/verify-email',
    { config, schema: { tags, body: VerifyEmailDto, response } },
    (request) => verification.verify(request.body.token, actorOf(request)),
  );
  api.post(
    '/users/request-reset-password',
    { config, schema: { tags, body: RequestResetPasswordDto, response } },
    (request) => reset.request(normalEmail(request.body.email)),
  );
  api.post(
    '/users/reset-password',
    { config, schema: { tags, body: ResetPasswordDto, response } },
    (request) => reset.reset(request.body, actorOf(request)),
  );
}
