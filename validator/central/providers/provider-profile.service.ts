/** Profile of a provider: e-mail address, subscriptions, chat account and opt-in. */
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
import {
  findProvider,
  listSubscribedTypes,
  listSubscribers,
  listSubscriptions,
  type ProviderChange,
  replaceSubscriptions,
  updateProvider,
} from './provider.store.ts';

export type ProfilesDeps = {
  db: Database;
  clock: Clock;
  chat: ChatHandshake;
  /** Address that is returned to providers who opt in or out. */
  minerAddress: Pick<CentralMiner, 'host' | 'port'>;
};

export type Profiles = ReturnType<typeof createProfiles>;

export function createProfiles({ db, clock, chat, minerAddress }: ProfilesDeps) {
  async function requireProvider(handle: Db, id: string): Promise<Provider> {
    const provider = await findProvider(handle, id);
    if (provider === undefined) throw new Error(`provider ${id} is missing`);
    return provider;
  }

  async function profileIn(handle: Db, id: string): Promise<ProviderProfile> {
    return profileOf(await requireProvider(handle, id), await listSubscriptions(handle, id));
  }

  /** Updates the provider and runs `also` in the same transaction. Returns the new profile. */
  function update(
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

    setEmail: (caller: PortalIdentity, email: string) => update(caller, { email }),

    /** Replaces the subscriptions. Throws 400 for an unknown GPU type. */
    subscribe(caller: PortalIdentity, gpuClasses: readonly string[]): Promise<ProviderProfile> {
      const distinct = [...new Set(gpuClasses.map(requireTypeName))];
      return update(caller, {}, (tx) => replaceSubscriptions(tx, caller.providerId, distinct));
    },

    /** Opts the provider in or out. After an opt-out, its free nodes cannot be rented; current rentals continue. */
    async setOptIn(caller: PortalIdentity, isIn: boolean): Promise<OptInAnswer> {
      const profile = await update(caller, { opted_in: isIn ? 1 : 0 });
      return {
        miner_hotkey: profile.miner_hotkey,
        miner_coldkey: profile.miner_coldkey ?? profile.miner_hotkey,
        central_miner_ip: minerAddress.host,
        central_miner_port: minerAddress.port,
        opt_in_status: profile.opt_in_status,
      };
    },

    beginChat: ({ providerId }: PortalIdentity) => chat.begin(providerId),

    /**
     * Links the chat account. Returns null if the user has denied access on the platform. Throws 409 if the account is
     * linked to another provider.
     */
    async finishChat(
      caller: PortalIdentity,
      query: ChatCallbackQuery,
    ): Promise<ChatOAuthCallbackResponse | null> {
      const user = await chat.identify(caller.providerId, query);
      if (user === null) return null;
      const link = { chat_user_id: user.id, chat_username: user.username };
      await update(caller, link).catch((error: unknown) => {
        throw isUniqueViolation(error) ? linkedElsewhere(error) : error;
      });
      return { connected: true, discord_id: user.id, discord_username: user.username };
    },

    /** Unlinks the chat account. Has no effect if none is linked. */
    unlinkChat: (caller: PortalIdentity) =>
      update(caller, { chat_user_id: null, chat_username: null }),
  };
}

function linkedElsewhere(cause: unknown): ApiError {
  return new ApiError('conflict', 'This chat account is linked to another provider', {
    hint: 'Unlink it from that provider first, or choose another account.',
    cause,
  });
}

/** Returns the profile. Providers with a linked chat account are eligible for extra incentives of the subnet. */
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

/** Subscriptions to machine requests, for the notifications of the market. */
export const subscriptions = { types: listSubscribedTypes, subscribers: listSubscribers };
