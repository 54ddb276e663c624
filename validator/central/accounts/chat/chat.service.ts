/** Links accounts to users of a chat platform. */

import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Database, Db } from '../../platform/database/tables.ts';
import type { Actor } from '../../platform/identity.ts';
import type { ChatPlatform } from '../../platform/ports.ts';
import { setChatUser } from '../account/account.service.ts';
import { recordAccountEvent } from '../account/account-event.ts';
import type { ChatCallbackQuery, ChatOAuthCallbackResponse } from './chat.schemas.ts';
import { deleteLinkStates } from './chat.store.ts';
import { createChatHandshake } from './chat-handshake.ts';

export type ChatLinksDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  secret: Uint8Array;
  platform: ChatPlatform | null;
};

export type ChatLinks = ReturnType<typeof createChatLinks>;

export function createChatLinks(deps: ChatLinksDeps) {
  const { db, clock, random } = deps;
  const handshake = createChatHandshake({
    ...deps,
    owners: 'accounts',
    beginsAt: 'GET /users/me/chat/oauth-url',
  });

  return {
    begin: handshake.begin,

    /** Returns null if the user denied access. Throws `conflict` if the chat user is linked to another account. */
    async finish(
      accountId: string,
      query: ChatCallbackQuery,
      actor: Actor,
    ): Promise<ChatOAuthCallbackResponse | null> {
      const user = await handshake.identify(accountId, query);
      if (user === null) return null;
      await db.transaction().execute(async (tx) => {
        if (!(await setChatUser(tx, accountId, user, clock.now()))) {
          throw new ApiError('conflict', 'This chat account is linked to another account', {
            hint: 'Unlink the chat account from the other account first, or choose another chat account.',
          });
        }
        await recordAccountEvent(tx, { clock, random }, accountId, actor, 'chat account linked');
      });
      return { connected: true, discord_id: user.id, discord_username: user.username };
    },

    /** Unlinks the chat user. Has no effect without a link. */
    async unlink(accountId: string, actor: Actor): Promise<{ success: true }> {
      await db.transaction().execute(async (tx) => {
        await setChatUser(tx, accountId, null, clock.now());
        await recordAccountEvent(tx, { clock, random }, accountId, actor, 'chat account unlinked');
      });
      return { success: true };
    },

    /** Deletes unfinished links of an account that is being removed. */
    deleteAccountData: (tx: Db, accountId: string) => deleteLinkStates(tx, accountId),
  };
}
