/** Who gets a support channel for which pod (contract 2.3, 5.2). */

import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { accountOf } from '../../accounts/auth/account-access.ts';
import type { Database, Db, Pod } from '../../platform/database/tables.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import type { SupportChannels } from '../../platform/ports.ts';
import { findAnyPod, goneAtOf } from '../pods/pod-access.ts';
import type { PodChatChannelRequest, PodChatChannelResponse } from './support-channel.schemas.ts';
import { clearChannels } from './support-channel.store.ts';

/** Hexadecimal digits of the pod's id in the channel's name: no two pods share them by chance. */
const NAME_DIGITS = 12;

export type PodChannels = ReturnType<typeof createPodChannels>;

export function createPodChannels(deps: { db: Database; clock: Clock; channels: SupportChannels }) {
  const { db, clock, channels } = deps;

  /** Unlike on other routes a foreign pod is told from an absent one, which has a code of its own here. */
  async function requirePod(accountId: string, id: string): Promise<Pod> {
    const pod = await findAnyPod(db, id);
    if (pod === undefined) throw new ApiError('POD_NOT_FOUND', `There is no pod ${id}`);
    if (pod.account_id !== accountId) {
      throw new ApiError('forbidden', 'The pod is of another account');
    }
    const goneAt = goneAtOf(pod, clock.now());
    if (goneAt === null) return pod;
    throw new ApiError('POD_NOT_FOUND', `Pod ${id} was deleted`, {
      details: { deleted_at: naiveUtc(goneAt), reason_code: pod.reason_code },
    });
  }

  return {
    /** Opens the channel of the caller's pod, or returns the one that is there. */
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

/** The same for a pod whenever it is asked for. */
function channelName(podId: string): string {
  return `pod-${podId.replaceAll('-', '').slice(0, NAME_DIGITS)}`;
}

function textOf(text: string | undefined): string | null {
  return text === undefined || text === '' ? null : text;
}

/** Takes away who an account was on the chat platform and what it wrote. */
export function forgetChannels(tx: Db, accountId: string): Promise<void> {
  return clearChannels(tx, accountId);
}
