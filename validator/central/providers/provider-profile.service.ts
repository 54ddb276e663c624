/** What a provider says of itself: contact, subscriptions, its chat account, whether it takes part (contract 10). */

import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { isUniqueViolation } from '../../database/engine.ts';
import type {
  ChatCallbackQuery,
  ChatOAuthCallbackResponse,
} from '../accounts/chat/chat.schemas.ts';
import type { ChatHandshake } from '../accounts/chat/chat-handshake.ts';
import type { Database, Db, Provider } from '../platform/database/tables.ts';
import { lockRow } from '../platform/database/transactions.ts';
import type { PortalIdentity } from '../platform/identity.ts';
import type { CentralMiner } from '../platform/ports.ts';
import { requireTypeName } from './node-price.ts';
import type { OptInAnswer, ProviderProfile } from './provider.schemas.ts';
import { findProvider, type ProviderChange, updateProvider } from './provider.store.ts';
import { listSubscriptions, replaceSubscriptions } from './subscription.store.ts';

export type ProfilesDeps = {
  db: Database;
  clock: Clock;
  chat: ChatHandshake;
  /** Null: there is none. */
  miner: CentralMiner | null;
};

export type Profiles = ReturnType<typeof createProfiles>;

export function createProfiles({ db, clock, chat, miner }: ProfilesDeps) {
  async function requireProvider(handle: Db, id: string): Promise<Provider> {
    const provider = await findProvider(handle, id);
    if (provider === undefined) throw new Error(`provider ${id} is missing`);
    return provider;
  }

  async function profileIn(handle: Db, id: string): Promise<ProviderProfile> {
    return profileOf(await requireProvider(handle, id), await listSubscriptions(handle, id));
  }

  /** Changes the row, and in the same transaction what `also` does; the profile afterwards. */
  function changed(
    { providerId }: PortalIdentity,
    change: ProviderChange,
    also: (tx: Db) => Promise<void> = async () => undefined,
  ): Promise<ProviderProfile> {
    return db.transaction().execute(async (tx) => {
      await lockRow(tx, 'providers', providerId);
      await also(tx);
      await updateProvider(tx, providerId, { ...change, updated_at: clock.now() });
      return profileIn(tx, providerId);
    });
  }

  return {
    profile: ({ providerId }: PortalIdentity) => profileIn(db, providerId),

    setEmail: (caller: PortalIdentity, email: string) => changed(caller, { email }),

    /** In place of those before; none clears them. 400 for a type that nobody knows. */
    subscribe(caller: PortalIdentity, gpuClasses: readonly string[]): Promise<ProviderProfile> {
      const distinct = [...new Set(gpuClasses.map(requireTypeName))];
      return changed(caller, {}, (tx) => replaceSubscriptions(tx, caller.providerId, distinct));
    },

    /** Out: its free nodes leave the market with the commit, what is rented goes on (marketplace reference 1.18). */
    async setOptIn(caller: PortalIdentity, isIn: boolean): Promise<OptInAnswer> {
      const profile = await changed(caller, { opted_in: isIn ? 1 : 0 });
      return {
        miner_hotkey: profile.miner_hotkey,
        miner_coldkey: profile.miner_coldkey,
        central_miner_ip: miner?.host ?? null,
        central_miner_port: miner?.port ?? null,
        opt_in_status: profile.opt_in_status,
      };
    },

    beginChat: ({ providerId }: PortalIdentity) => chat.begin(providerId),

    /** Null when the provider said no. 409 for a chat account that another provider has linked. */
    async finishChat(
      caller: PortalIdentity,
      query: ChatCallbackQuery,
    ): Promise<ChatOAuthCallbackResponse | null> {
      const user = await chat.identify(caller.providerId, query);
      if (user === null) return null;
      const link = { chat_user_id: user.id, chat_username: user.username };
      await changed(caller, link).catch((error: unknown) => {
        throw isUniqueViolation(error) ? takenByAnother(error) : error;
      });
      return { connected: true, discord_id: user.id, discord_username: user.username };
    },

    /** Also where nothing is linked. */
    unlinkChat: (caller: PortalIdentity) =>
      changed(caller, { chat_user_id: null, chat_username: null }),
  };
}

function takenByAnother(cause: unknown): ApiError {
  return new ApiError('conflict', 'This chat account is linked to another provider', {
    hint: 'Unlink it there first, or choose another one.',
    cause,
  });
}

/** Extra incentives of the subnet are for those who can be talked to (specification, portal rule 4). */
function profileOf(provider: Provider, gpuClasses: string[]): ProviderProfile {
  const isLinked = provider.chat_user_id !== null;
  return {
    provider_id: provider.id,
    miner_id: provider.id,
    id: provider.id,
    miner_hotkey: provider.hotkey,
    miner_coldkey: provider.coldkey,
    email: provider.email,
    discord_id: provider.chat_user_id,
    discord_connected: isLinked,
    extra_incentive_eligible: isLinked,
    machine_request_subscription: gpuClasses,
    opt_in_status: provider.opted_in === 1,
  };
}
