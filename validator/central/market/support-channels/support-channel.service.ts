/** Support channels: one for each pod, for renters who have linked a chat account. */

import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import { accountOf, lockAccount } from '../../accounts/auth/account-access.ts';
import type { Mails } from '../../delivery/mail/mail.service.ts';
import { supportMessageMail } from '../../delivery/mail/mail-text.ts';
import type { Database, Pod, SupportChannelRow } from '../../platform/database/tables.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import type { SupportChannels } from '../../platform/ports.ts';
import { findAnyPod, goneAtOf } from '../pods/pod-access.ts';
import type { PodChatChannelRequest, PodChatChannelResponse } from './support-channel.schemas.ts';
import { findChannel, insertChannel } from './support-channel.store.ts';

export { clearChannelsOf } from './support-channel.store.ts';

/** Hexadecimal digits of the pod's id in the channel's name, enough to make collisions improbable. */
const NAME_DIGITS = 12;
const HOUR_MS = 3_600_000;
const MAX_MESSAGES_PER_HOUR = 20;
const MESSAGE_USEFUL_MS = 7 * 24 * HOUR_MS;

type SupportMessage = Parameters<typeof supportMessageMail>[0] & { accountId: string };

export type PodChannels = ReturnType<typeof createPodChannels>;

export type PodChannelsDeps = {
  db: Database;
  clock: Clock;
  channels: SupportChannels;
  mails: Mails;
  /** Sends waiting mails now. */
  wakeMail(): void;
  /** Mail address of the operator's support. If null, messages stay in the database. */
  supportEmail: string | null;
};

export function createPodChannels(deps: PodChannelsDeps) {
  const { db, clock, channels, mails, supportEmail } = deps;

  /** Mails a message to the operator. A repeated request within an hour sends one mail. */
  async function notifySupport(to: string, message: SupportMessage): Promise<void> {
    const { accountId, ...about } = message;
    const hour = Math.floor(clock.now() / HOUR_MS);
    const digest = sha256Hex(`${about.topic ?? ''}\n${about.text}`);
    await db.transaction().execute(async (tx) => {
      await mails.add(tx, {
        accountId,
        to,
        kind: 'support-message',
        content: supportMessageMail(about),
        dedupeKey: `support:${about.podId}:${hour}:${digest}`,
        usefulForMs: MESSAGE_USEFUL_MS,
        uncounted: true,
      });
    });
    deps.wakeMail();
  }

  /**
   * Throws 404 `POD_NOT_FOUND` for an unknown or deleted pod. Unlike most routes of pods, throws 403 for another
   * account's pod.
   */
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

  /**
   * Throws if the account has sent too many messages. Called before anything is written, so that a refused message
   * creates no channel.
   */
  async function requireRoom(accountId: string): Promise<void> {
    const recent = await mails.countRecent(db, accountId, 'support-message');
    if (recent < MAX_MESSAGES_PER_HOUR) return;
    throw new ApiError(
      'rate_limited',
      `Support accepts ${MAX_MESSAGES_PER_HOUR} messages an hour`,
      {
        headers: { 'Retry-After': '60' },
      },
    );
  }

  return {
    /** Opens the channel of the caller's pod, or returns the existing one, and sends the message to the operator. */
    async open(
      identity: UserIdentity,
      podId: string,
      { topic, message }: PodChatChannelRequest,
    ): Promise<PodChatChannelResponse> {
      const pod = await requirePod(identity.accountId, podId);
      const { chat_user_id: chatUserId, email } = await accountOf(db, identity);
      if (chatUserId === null) {
        throw new ApiError('forbidden', 'No chat account is linked', {
          hint: 'Link a chat account with GET /users/me/chat/oauth-url, then retry.',
        });
      }
      const text = textOf(message);
      if (text !== null) await requireRoom(pod.account_id);
      const channel = await channels.open({
        podId: pod.id,
        accountId: pod.account_id,
        name: channelName(pod.id),
        chatUserId,
        topic: textOf(topic),
        message: text,
      });
      if (text !== null && supportEmail !== null) {
        await notifySupport(supportEmail, {
          accountId: pod.account_id,
          channel: channel.name,
          podId: pod.id,
          podName: pod.pod_name,
          from: email,
          topic: textOf(topic),
          text,
        });
      }
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

/** Name of a pod's channel, which is the same for every call. */
function channelName(podId: string): string {
  return `pod-${podId.replaceAll('-', '').slice(0, NAME_DIGITS)}`;
}

function textOf(text: string | undefined): string | null {
  return text === undefined || text === '' ? null : text;
}

/**
 * Stores channels in the database for operators without a chat platform; the operator's support reads them there.
 * Channels have the URL `baseUrl`/name, or no URL if `baseUrl` is null.
 */
export function createLocalChannels(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  baseUrl: string | null;
}): SupportChannels {
  const { db, clock, random } = deps;
  const baseUrl = deps.baseUrl?.replace(/\/+$/, '') ?? null;

  function toChannel({ id, name, created_at }: SupportChannelRow, created: boolean) {
    const url = baseUrl === null ? null : `${baseUrl}/${name}`;
    return { id, name, url, created, createdAtMs: created_at };
  }

  return {
    async open({ podId, accountId, name, chatUserId, topic, message }) {
      const fresh: SupportChannelRow = {
        pod_id: podId,
        id: random.uuid(),
        account_id: accountId,
        chat_user_id: chatUserId,
        name,
        topic,
        message,
        created_at: clock.now(),
      };
      return db.transaction().execute(async (tx) => {
        await lockAccount(tx, { accountId });
        // The pod's id is the primary key, so one of several concurrent calls inserts the channel and the others read
        // it.
        if (await insertChannel(tx, fresh)) return toChannel(fresh, true);
        const existing = await findChannel(tx, podId);
        if (existing === undefined) throw new Error(`support channel of pod ${podId} is missing`);
        return toChannel(existing, false);
      });
    },
  };
}
