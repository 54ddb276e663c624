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
    { config, schema: { tags, response: { 200: ChatOAuthAuthorizationUrlResponse } } },
    (request) => links.begin(userOf(request).accountId),
  );
  api.get(
    '/users/me/chat/callback',
    {
      config,
      schema: {
        tags,
        querystring: ChatCallbackQuery,
        response: { 200: ChatOAuthCallbackResponse.nullable() },
      },
    },
    async (request, reply) => {
      const { accountId } = userOf(request);
      const linked = await links.finish(accountId, request.query, actorOf(request));
      // Fastify would send null as an empty body.
      return (
        linked ??
        reply.type('application/json; charset=utf-8').serializer(JSON.stringify).send(null)
      );
    },
  );
  api.delete(
    '/users/me/chat',
    { config, schema: { tags, response: { 200: ChatUnlinked } } },
    (request) => links.unlink(userOf(request).accountId, actorOf(request)),
  );
}
