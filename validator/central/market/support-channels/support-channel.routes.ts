/** Route that opens the support channel of a pod. */
import type { HttpServer } from '#shared/http/server.ts';
import type { MailDeps } from '../../delivery/delivery.ts';
import { userOf } from '../../platform/identity.ts';
import { IdParams } from '../../platform/wire.ts';
import { PodChatChannelRequest, PodChatChannelResponse } from './support-channel.schemas.ts';
import {
  createLocalChannels,
  createPodChannels,
  type PodChannels,
} from './support-channel.service.ts';

function registerRoute(api: HttpServer, channels: PodChannels): void {
  api.post(
    '/pods/:id/chat-channel',
    {
      config: { auth: 'user' },
      schema: {
        tags: ['Pods'],
        summary: 'Open the support channel of a pod',
        description:
          "Returns the pod's channel for messages between the renter and the operator. The first request opens the channel. Every `message` is mailed to the operator's support.",
        errors: {
          POD_NOT_FOUND: 'there is no such pod, or it was deleted',
          forbidden:
            'the pod belongs to another account, or the account has no linked chat account',
          rate_limited: 'the account sent 20 messages within an hour',
        },
        retry:
          'Safe: a pod has one channel, and a repeat returns the same channel. A message that is repeated within an hour is mailed once.',
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

/**
 * Registers the route below /api. Channels open on the configured chat platform; without a platform, in the database.
 */
export function registerSupportChannels(api: HttpServer, deps: MailDeps): void {
  const { ports, options, mails, wakeMail } = deps;
  const { db, clock, random } = ports;
  const { channelUrl: baseUrl = null, supportEmail = null } = options;
  const channels = ports.channels ?? createLocalChannels({ db, clock, random, baseUrl });
  registerRoute(api, createPodChannels({ db, clock, channels, mails, wakeMail, supportEmail }));
}
