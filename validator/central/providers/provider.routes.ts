/** Portal routes for the provider itself: log-in, profile, tokens and chat account. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { ExchangeTicket, LogInTicketResponse } from '../accounts/account/session.schemas.ts';
import {
  ChatCallbackQuery,
  ChatOAuthAuthorizationUrlResponse,
  ChatOAuthCallbackResponse,
} from '../accounts/chat/chat.schemas.ts';
import { providerOf, userAgentOf } from '../platform/identity.ts';
import { type PortalAnswers, portalAnswer } from '../platform/portal-answer.ts';
import {
  CreateProviderToken,
  NewProviderToken,
  OptIn,
  OptInAnswer,
  PortalLogin,
  PortalPasswordLogin,
  PortalSession,
  ProviderProfile,
  ProviderTokenRow,
  SetEmail,
  SetPassword,
  SetSubscription,
  TokenParams,
} from './provider.schemas.ts';
import type { Providers } from './provider.service.ts';
import type { Profiles } from './provider-profile.service.ts';
import type { ProviderTokens } from './provider-token.service.ts';

const tags = ['Portal'];
const config = { auth: 'portal' } as const;
/** These routes require no token. Each request costs a signature or a password hash, or can guess a secret. */
const logInConfig = { auth: 'none', limit: 'login' } as const;

export type ProviderRoutesDeps = {
  answers: PortalAnswers;
  providers: Providers;
  profiles: Profiles;
  providerTokens: ProviderTokens;
};

export function registerProviderRoutes(portal: HttpServer, deps: ProviderRoutesDeps): void {
  const { answers, providers, profiles } = deps;
  const profile = { 200: portalAnswer(ProviderProfile) };

  portal.post(
    '/auth/login-flexible',
    {
      config: logInConfig,
      schema: {
        tags,
        summary: 'Log in with a hotkey',
        description:
          'Verifies the signature and returns a session token that is valid for 7 days. The first log-in of a hotkey creates the provider.',
        errors: {
          unauthorized:
            "the signature is invalid, the signed time differs too much from the server's time, or the message was already used",
          forbidden: 'the hotkey belongs to a validator',
          rate_limited: 'too many attempts from this address',
        },
        retry: 'Not safe: a message is accepted only once. Sign a new message.',
        body: PortalLogin,
        response: { 200: portalAnswer(PortalSession) },
      },
    },
    async (request) => answers.one(await providers.logIn(request.body, userAgentOf(request))),
  );
  portal.post(
    '/auth/login',
    {
      config: logInConfig,
      schema: {
        tags,
        summary: 'Log in with a password',
        description:
          'Checks the password that `POST /auth/set-password` stored, and returns a session token that is valid for 7 days.',
        errors: {
          unauthorized: 'the hotkey or the password is wrong, or no password was set',
          rate_limited: 'too many attempts from this address',
        },
        retry: 'Safe: every log-in returns a new token; earlier tokens stay valid.',
        body: PortalPasswordLogin,
        response: { 200: portalAnswer(PortalSession) },
      },
    },
    async (request) =>
      answers.one(await providers.logInByPassword(request.body, userAgentOf(request))),
  );
  registerTicketRoutes(portal, deps);
  portal.post(
    '/auth/set-password',
    {
      config: logInConfig,
      schema: {
        tags,
        summary: "Set the provider's password",
        description:
          'Stores a password. The request requires a signature as a log-in does, and no session. Afterwards `POST /auth/login` accepts the password. All sessions of the provider end; provider tokens stay valid.',
        errors: {
          unauthorized:
            "the signature is invalid, the signed time differs too much from the server's time, or the message was already used",
          rate_limited: 'too many attempts from this address',
        },
        retry: 'Not safe: a message is accepted only once. Sign a new message.',
        body: SetPassword,
        response: { 200: portalAnswer(z.object({})) },
      },
    },
    async (request) => {
      await providers.setPassword(request.body);
      return answers.one({});
    },
  );
  portal.post(
    '/auth/logout',
    {
      config,
      schema: {
        tags,
        summary: 'End the session',
        description:
          'Ends the session of this token, and the sessions that its log-in tickets began.',
        errors: { bad_request: 'the caller used a provider token, which has no session' },
        retry: 'Safe: a repeat returns 401, because the session has ended.',
        response: { 200: portalAnswer(z.object({})) },
      },
    },
    async (request) => {
      await providers.logOut(providerOf(request));
      return answers.one({});
    },
  );
  portal.get(
    '/auth/me',
    {
      config,
      schema: {
        tags,
        summary: 'Read the provider',
        description:
          'Returns the profile of the provider. Unlike other responses, it has no envelope.',
        response: { 200: ProviderProfile },
      },
    },
    (request) => profiles.profile(providerOf(request)),
  );
  portal.post(
    '/auth/set-email',
    {
      config,
      schema: {
        tags,
        summary: "Set the provider's e-mail address",
        description: 'Stores the address for notifications.',
        retry: 'Safe: a repeat stores the same address again.',
        body: SetEmail,
        response: profile,
      },
    },
    async (request) =>
      answers.one(await profiles.setEmail(providerOf(request), request.body.email)),
  );
  portal.post(
    '/auth/set-machine-request-subscription',
    {
      config,
      schema: {
        tags,
        summary: 'Subscribe to machine requests',
        description:
          'Replaces the list of GPU types for which the provider receives mails about machine requests.',
        retry: 'Safe: a repeat stores the same list again.',
        body: SetSubscription,
        response: profile,
      },
    },
    async (request) => {
      const { machine_request_subscription: classes } = request.body;
      return answers.one(await profiles.subscribe(providerOf(request), classes));
    },
  );
  for (const path of ['/miners/opt-in', '/providers/opt-in']) {
    portal.post(
      path,
      {
        config,
        schema: {
          tags,
          summary: 'Offer nodes, or stop new rentals',
          description:
            'Offers all nodes of the provider, or stops new rentals of all of them. Running pods continue. Both paths are the same operation.',
          retry: 'Safe: a repeat changes nothing.',
          body: OptIn,
          response: { 200: portalAnswer(OptInAnswer) },
        },
      },
      async (request) =>
        answers.one(await profiles.setOptIn(providerOf(request), request.body.opt_in_status)),
    );
  }
  registerChat(portal, deps);
  registerTokens(portal, deps);
}

function registerChat(portal: HttpServer, { answers, profiles }: ProviderRoutesDeps): void {
  portal.get(
    '/auth/me/discord/oauth-url',
    {
      config,
      schema: {
        tags,
        summary: 'Start linking a chat account',
        description:
          'Returns the URL of the page on which the user allows the link; null if the marketplace has no chat platform.',
        errors: { rate_limited: 'ten links were started and not finished' },
        retry: 'Safe: a repeat starts another link.',
        response: { 200: portalAnswer(ChatOAuthAuthorizationUrlResponse) },
      },
    },
    async (request) => answers.one(await profiles.beginChat(providerOf(request))),
  );
  portal.get(
    '/auth/me/discord/callback',
    {
      config,
      schema: {
        tags,
        summary: 'Finish linking a chat account',
        description:
          'Receives the redirect of the chat platform and links its user to the provider. `data` is null if the user denied access, or if the marketplace has no chat platform.',
        errors: {
          bad_request:
            'the state is unknown, used or expired, the state belongs to another provider, or the code is missing or was rejected',
          conflict: 'the chat user is linked to another provider',
          upstream_unavailable: 'the chat platform does not answer',
        },
        retry: 'Not safe: a state is accepted only once. Start a new link.',
        querystring: ChatCallbackQuery,
        response: { 200: portalAnswer(ChatOAuthCallbackResponse.nullable()) },
      },
    },
    async (request) => answers.one(await profiles.finishChat(providerOf(request), request.query)),
  );
  portal.delete(
    '/auth/me/discord',
    {
      config,
      schema: {
        tags,
        summary: 'Unlink the chat account',
        description: 'Removes the link. Has no effect if no chat account is linked.',
        retry: 'Safe: a repeat changes nothing.',
        response: { 200: portalAnswer(ProviderProfile) },
      },
    },
    async (request) => answers.one(await profiles.unlinkChat(providerOf(request))),
  );
}

function registerTokens(portal: HttpServer, { answers, providerTokens }: ProviderRoutesDeps): void {
  portal.get(
    '/auth/tokens',
    {
      config,
      schema: {
        tags,
        summary: 'List provider tokens',
        description: "Returns the provider's tokens, masked.",
        response: { 200: portalAnswer(z.array(ProviderTokenRow)) },
      },
    },
    async (request) => answers.one(await providerTokens.list(providerOf(request))),
  );
  portal.post(
    '/auth/tokens',
    {
      config,
      schema: {
        tags,
        summary: 'Create a provider token',
        description:
          'Creates a token (`lpk_…`) for scripts. Only this response contains the full token.',
        errors: {
          forbidden: 'the caller used a provider token; a session is required',
          bad_request: 'the expiry is in the past, or the provider has too many tokens',
        },
        retry:
          'Not safe: a repeat creates a second token. List the tokens before you repeat the request.',
        body: CreateProviderToken,
        response: { 200: portalAnswer(NewProviderToken) },
      },
    },
    async (request) => answers.one(await providerTokens.create(providerOf(request), request.body)),
  );
  portal.delete(
    '/auth/tokens/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Delete a provider token',
        description: 'Deletes the token. The portal rejects the token immediately.',
        errors: {
          forbidden: 'the caller used a provider token; a session is required',
          not_found: 'the provider has no such token',
        },
        retry: 'Safe: a repeat returns 404 and changes nothing.',
        params: TokenParams,
        response: { 200: portalAnswer(ProviderTokenRow) },
      },
    },
    async (request) =>
      answers.one(await providerTokens.remove(providerOf(request), request.params.id)),
  );
}

/** Routes of the tickets that begin a session. */
function registerTicketRoutes(
  portal: HttpServer,
  { answers, providers }: ProviderRoutesDeps,
): void {
  portal.post(
    '/auth/tickets',
    {
      config,
      schema: {
        tags,
        summary: 'Create a log-in ticket',
        description:
          'Returns a ticket that begins one session of the provider, for example in a browser. The ticket can be used once, within an hour, and only while the session that created it is valid. A provider has at most 10 unused tickets; a further one replaces the oldest.',
        errors: { forbidden: 'the caller used a provider token' },
        retry: 'Safe: a repeat creates another ticket; unused tickets expire.',
        response: { 200: portalAnswer(LogInTicketResponse) },
      },
    },
    async (request) => answers.one(await providers.issueTicket(providerOf(request))),
  );
  portal.post(
    '/auth/exchange-ticket',
    {
      config: logInConfig,
      schema: {
        tags,
        summary: 'Log in with a ticket',
        description:
          'Uses a ticket and returns a session token for 7 days, as a log-in does. If two requests send the same ticket, one of them succeeds.',
        errors: {
          ticket_invalid:
            'the ticket is unknown, used or expired, or the session that created it has ended',
          rate_limited: 'too many attempts from this address',
        },
        retry: 'Not safe: a ticket works once. If the answer was lost, create another ticket.',
        body: ExchangeTicket,
        response: { 200: portalAnswer(PortalSession) },
      },
    },
    async (request) =>
      answers.one(await providers.logInByTicket(request.body.ticket, userAgentOf(request))),
  );
}
