/** Support channels: one for each pod, for renters who have linked a chat account. */

import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { accountOf } from '../../accounts/auth/account-access.ts';
import type { Database, Pod } from '../../platform/database/tables.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import type { SupportChannels } from '../../platform/ports.ts';
import { findAnyPod, goneAtOf } from '../pods/pod-access.ts';
import type { PodChatChannelRequest, PodChatChannelResponse } from './support-channel.schemas.ts';

export { clearChannelsOf } from './support-channel.store.ts';

/** Hexadecimal digits of the pod's id in the channel's name: enough to make collisions improbable. */
const NAME_DIGITS = 12;

export type PodChannels = ReturnType<typeof createPodChannels>;

export function createPodChannels(deps: { db: Database; clock: Clock; channels: SupportChannels }) {
  const { db, clock, channels } = deps;

  /** Throws 404 `POD_NOT_FOUND` for an unknown or deleted pod. Unlike other routes it throws 403 for another account's pod. */
  async function requirePod(accountId: string, id: string): Promise<Pod> {
    const pod = await findAnyPod(db, id);
    if (pod === undefined) throw new ApiError('POD_NOT_FOUND', `There is no pod ${id}`);
    if (pod.account_id !== accountId) {
      throw new ApiError('forbidden', 'The pod belongs to another account');
    }
    const goneAt = goneAtOf(pod, clock.now());
    if (goneAt === null) return pod;
    throw new ApiError('POD_NOT_FOUND', `Pod ${id} was deleted`, {
      details: { deleted_at: naiveUtc(goneAt), reason_code: pod.reason_code },
    });
  }

  return {
    /** Opens the channel of the caller's pod, or returns the existing one. */
    async open(
      identity: UserIdentity,
      podId: string,
      { topic, message }: PodChatChannelRequest,
    ): Promise<PodChatChannelResponse> {
      const pod = await requirePod(identity.accountId, podId);
      const { chat_user_id: chatUserId } = await accountOf(db, identity);
      if (chatUserId === null) {
        throw new ApiError('forbidden', 'No chat account is linked', {
          hint: 'Link one with GET /users/me/chat/oauth-url, then retry.',
        });
      }
      const channel = await channels.open({
        podId: pod.id,
        accountId: pod.account_id,
        name: channelName(pod.id),
        chatUserId,
        topic: textOf(topic),
        message: textOf(message),
      });
      return {
        channel_id: channel.id,
        channel_name: channel.name,
        channel_url: channel.url,
        created: channel.created,
        pod_id: pod.id,
        created_at: naiveUtc(channel.createdAtMs),
      };
    },
  };
}

/** Name of a pod's channel; the same for every call. */
function channelName(podId: string): string {
  return `pod-${podId.replaceAll('-', '').slice(0, NAME_DIGITS)}`;
}

function textOf(text: string | undefined): string | null {
  return text === undefined || text === '' ? null : text;
}
