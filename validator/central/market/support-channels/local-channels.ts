/** Support channels kept in our own database, where whoever gives support reads them: nothing is opened elsewhere. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import { lockAccount } from '../../accounts/auth/account-access.ts';
import type { Database, SupportChannelRow } from '../../platform/database/tables.ts';
import type { SupportChannels } from '../../platform/ports.ts';
import { findChannel, insertChannel } from './support-channel.store.ts';

/** `baseUrl`: where channels are shown, each below it by its name; null: nowhere. */
export function createLocalChannels(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  baseUrl: string | null;
}): SupportChannels {
  const { db, clock, random } = deps;
  const baseUrl = deps.baseUrl?.replace(/\/+$/, '') ?? null;

  function shown({ id, name, created_at }: SupportChannelRow, created: boolean) {
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
        // The pod is the key: of several at once one opens the channel, the others find it.
        if (await insertChannel(tx, fresh)) return shown(fresh, true);
        const present = await findChannel(tx, podId);
        if (present === undefined) throw new Error(`the support channel of pod ${podId} is gone`);
        return shown(present, false);
      });
    },
  };
}
