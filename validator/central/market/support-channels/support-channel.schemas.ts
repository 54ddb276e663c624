/** Request and response for the support channel of a pod. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { NaiveTime, optional } from '../../platform/wire.ts';

const MAX_TOPIC_CHARS = 200;
const MAX_MESSAGE_CHARS = 2_000;

/**
 * The topic names a new channel and is ignored if the channel exists. Each message is sent to the operator's support.
 */
export const PodChatChannelRequest = z
  .object(
    described(
      {
        topic: optional(z.string().trim().max(MAX_TOPIC_CHARS)),
        message: optional(z.string().trim().max(MAX_MESSAGE_CHARS)),
      },
      {
        topic: 'Topic of a new channel, up to 200 characters; ignored if the channel exists.',
        message:
          'Message to the operator, up to 2000 characters; absent if the request must only open the channel.',
      },
    ),
  )
  .meta({
    id: 'PodChatChannelRequest',
    example: { topic: 'network', message: 'Downloads are slow since this morning.' },
  });
export type PodChatChannelRequest = z.output<typeof PodChatChannelRequest>;

export const PodChatChannelResponse = z
  .object(
    described(
      {
        channel_id: z.string(),
        channel_name: z.string(),
        channel_url: z.string().nullable(),
        created: z.boolean(),
        pod_id: z.uuid(),
        created_at: NaiveTime,
      },
      {
        channel_id: 'Id of the channel.',
        channel_name: 'Name of the channel.',
        channel_url:
          'Address of the channel; null if the operator has configured no address of channels.',
        created: 'True if this request opened the channel; false if it existed.',
        pod_id: 'Id of the pod.',
        created_at: 'Time at which the channel was opened (UTC).',
      },
    ),
  )
  .meta({ id: 'PodChatChannelResponse' });
export type PodChatChannelResponse = z.output<typeof PodChatChannelResponse>;
