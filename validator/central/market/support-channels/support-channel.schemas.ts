/** Request and response for the support channel of a pod. */
import { z } from 'zod';
import { NaiveTime, optional } from '../../platform/wire.ts';

const MAX_TOPIC_CHARS = 200;
const MAX_MESSAGE_CHARS = 2_000;

/** Both fields are used when the channel is opened, and ignored if it already exists. */
export const PodChatChannelRequest = z
  .object({
    topic: optional(z.string().trim().max(MAX_TOPIC_CHARS)),
    message: optional(z.string().trim().max(MAX_MESSAGE_CHARS)),
  })
  .meta({ id: 'PodChatChannelRequest' });
export type PodChatChannelRequest = z.output<typeof PodChatChannelRequest>;

export const PodChatChannelResponse = z
  .object({
    channel_id: z.string(),
    channel_name: z.string(),
    channel_url: z.string().nullable(),
    created: z.boolean(),
    pod_id: z.uuid(),
    created_at: NaiveTime,
  })
  .meta({ id: 'PodChatChannelResponse' });
export type PodChatChannelResponse = z.output<typeof PodChatChannelResponse>;
