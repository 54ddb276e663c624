/** Support channels stored in the database, from which the operator's support reads them. No chat platform is involved. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { lockAccount } from '../../accounts/auth/account-access.ts';
import type { Database, SupportChannelRow } from '../../platform/database/tables.ts';
import type { SupportChannels } from '../../platform/ports.ts';
import { findChannel, insertChannel } from './support-channel.store.ts';

/** Channels have the URL `baseUrl`/name, or none if `baseUrl` is null. */
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
        // The pod's id is the primary key: one of several concurrent calls inserts the channel, the others read it.
        if (await insertChannel(tx, fresh)) return toChannel(fresh, true);
        const existing = await findChannel(tx, podId);
        if (existing === undefined) throw new Error(`support channel of pod ${podId} is missing`);
        return toChannel(existing, false);
      });
    },
  };
}
