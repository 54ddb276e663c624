/** Routes that link an account to a chat user: /users/me/chat. */
import type { HttpServer } from '#shared/http/server.ts';
import { actorOf, userOf } from '../../platform/identity.ts';
import {
  ChatCallbackQuery,
  ChatOAuthAuthorizationUrlResponse,
  ChatOAuthCallbackResponse,
  ChatUnlinked,
} from './chat.schemas.ts';
import type { ChatLinks } from './chat.service.ts';

const tags = ['Users'];
const config = { auth: 'user' } as const;

export function registerChatRoutes(api: HttpServer, links: ChatLinks): void {
  api.get(
    '/users/me/chat/oauth-url',
    {
      config,
      schema: {
        tags,
        summary: 'Start linking a chat account',
        description:
          'Returns the address at which the user allows the link. The address is valid for ten minutes and one use. It is null if the marketplace has no chat platform.',
        errors: { rate_limited: 'ten links were started and not finished' },
        retry: 'Safe: a repeat starts another link.',
        response: { 200: ChatOAuthAuthorizationUrlResponse },
      },
    },
    (request) => links.begin(userOf(request).accountId),
  );
  api.get(
    '/users/me/chat/callback',
    {
      config,
      schema: {
        tags,
        summary: 'Finish linking a chat account',
        description:
          'Receives the redirect of the chat platform and links its user to the account. Returns null if the user denied access, or if the marketplace has no chat platform.',
        errors: {
          bad_request:
            'the state is unknown, used, expired or belongs to another account, or the code is missing or refused',
          conflict: 'the chat user is linked to another account',
          upstream_unavailable: 'the chat platform does not answer',
        },
        retry: 'Not safe: a state works once. Start a new link.',
        querystring: ChatCallbackQuery,
        response: { 200: ChatOAuthCallbackResponse.nullable() },
      },
    },
    async (request, reply) => {
      const { accountId } = userOf(request);
      const linked = await links.finish(accountId, request.query, actorOf(request));
      // Fastify would send an empty body for null.
      return (
        linked ??
        reply.type('application/json; charset=utf-8').serializer(JSON.stringify).send(null)
      );
    },
  );
  api.delete(
    '/users/me/chat',
    {
      config,
      schema: {
        tags,
        summary: 'Unlink the chat account',
        description: 'Removes the link. Has no effect without a link.',
        retry: 'Safe: a repeat changes nothing.',
        response: { 200: ChatUnlinked },
      },
    },
    (request) => links.unlink(userOf(request).accountId, actorOf(request)),
  );
}
