/** POST /pods/{id}/chat-channel (contract 5.2). */
import type { HttpServer } from '#shared/http/server.ts';
import { userOf } from '../../platform/identity.ts';
import { IdParams } from '../../platform/wire.ts';
import { PodChatChannelRequest, PodChatChannelResponse } from './support-channel.schemas.ts';
import type { PodChannels } from './support-channel.service.ts';

/** Registers it. */
export function registerSupportChannelRoutes(api: HttpServer, channels: PodChannels): void {
  api.post(
    '/pods/:id/chat-channel',
    {
      config: { auth: 'user' },
      schema: {
        tags: ['Pods'],
        params: IdParams,
        body: PodChatChannelRequest.nullish(),
        response: { 200: PodChatChannelResponse },
      },
    },
    (request) =>
      channels.open(
        userOf(request),
        request.params.id,
        request.body ?? { topic: undefined, message: undefined },
      ),
  );
}
