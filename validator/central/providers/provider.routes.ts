/** Portal routes for the provider itself: log-in, profile, tokens and chat account. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import {
  ChatCallbackQuery,
  ChatOAuthAuthorizationUrlResponse,
  ChatOAuthCallbackResponse,
} from '../accounts/chat/chat.schemas.ts';
import { providerOf } from '../platform/identity.ts';
import { type PortalAnswers, portalAnswer } from '../platform/portal-answer.ts';
import {
  CreateProviderToken,
  NewProviderToken,
  OptIn,
  OptInAnswer,
  PortalLogin,
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
/** These routes need no token, and each request costs a signature verification or a password hash. */
const bySignature = { auth: 'none', limit: 'login' } as const;

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
      config: bySignature,
      schema: { tags, body: PortalLogin, response: { 200: portalAnswer(PortalSession) } },
    },
    async (request) => answers.one(await providers.logIn(request.body)),
  );
  portal.post(
    '/auth/set-password',
    {
      config: bySignature,
      schema: { tags, body: SetPassword, response: { 200: portalAnswer(z.object({})) } },
    },
    async (request) => {
      await providers.setPassword(request.body);
      return answers.one({});
    },
  );
  portal.post('/auth/logout', { config, schema: { tags } }, async (request) => {
    await providers.logOut(providerOf(request));
    return answers.one({});
  });
  portal.get(
    '/auth/me',
    { config, schema: { tags, response: { 200: ProviderProfile } } },
    (request) => profiles.profile(providerOf(request)),
  );
  portal.post(
    '/auth/set-email',
    { config, schema: { tags, body: SetEmail, response: profile } },
    async (request) =>
      answers.one(await profiles.setEmail(providerOf(request), request.body.email)),
  );
  portal.post(
    '/auth/set-machine-request-subscription',
    { config, schema: { tags, body: SetSubscription, response: profile } },
    async (request) => {
      const { machine_request_subscription: classes } = request.body;
      return answers.one(await profiles.subscribe(providerOf(request), classes));
    },
  );
  for (const path of ['/miners/opt-in', '/providers/opt-in']) {
    portal.post(
      path,
      { config, schema: { tags, body: OptIn, response: { 200: portalAnswer(OptInAnswer) } } },
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
      schema: { tags, response: { 200: portalAnswer(ChatOAuthAuthorizationUrlResponse) } },
    },
    async (request) => answers.one(await profiles.beginChat(providerOf(request))),
  );
  portal.get(
    '/auth/me/discord/callback',
    {
      config,
      schema: {
        tags,
        querystring: ChatCallbackQuery,
        response: { 200: portalAnswer(ChatOAuthCallbackResponse.nullable()) },
      },
    },
    async (request) => answers.one(await profiles.finishChat(providerOf(request), request.query)),
  );
  portal.delete(
    '/auth/me/discord',
    { config, schema: { tags, response: { 200: portalAnswer(ProviderProfile) } } },
    async (request) => answers.one(await profiles.unlinkChat(providerOf(request))),
  );
}

function registerTokens(portal: HttpServer, { answers, providerTokens }: ProviderRoutesDeps): void {
  portal.get(
    '/auth/tokens',
    { config, schema: { tags, response: { 200: portalAnswer(z.array(ProviderTokenRow)) } } },
    async (request) => answers.one(await providerTokens.list(providerOf(request))),
  );
  portal.post(
    '/auth/tokens',
    {
      config,
      schema: {
        tags,
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
      schema: { tags, params: TokenParams, response: { 200: portalAnswer(ProviderTokenRow) } },
    },
    async (request) =>
      answers.one(await providerTokens.remove(providerOf(request), request.params.id)),
  );
}
