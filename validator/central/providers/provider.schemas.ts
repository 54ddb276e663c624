/** Requests and responses of the portal's provider routes. */
import { z } from 'zod';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { displayName, EmailAddress, IsoTime, NaiveTime, optional, Uuid } from '../platform/wire.ts';

const MAX_SUBSCRIPTIONS = 100;
const MAX_GPU_TYPE_CHARS = 64;

export const PortalLogin = z
  .object({
    miner_hotkey: Hotkey,
    /** Unix seconds as decimal text. */
    message: z.string().max(64),
    /** Hex, with or without 0x. */
    signature: z.string().max(256),
  })
  .meta({ id: 'PortalLogin' });
export type PortalLogin = z.output<typeof PortalLogin>;

export const Miner = z
  .object({
    id: z.uuid(),
    miner_hotkey: z.string(),
    miner_coldkey: z.string().nullable(),
    email: z.string().nullable(),
    discord_id: z.string().nullable(),
    machine_request_subscription: z.array(z.string()),
    created_at: z.string(),
    updated_at: z.string(),
  })
  .meta({ id: 'Miner' });
export type Miner = z.output<typeof Miner>;

export const PortalSession = z.object({ miner: Miner, token: z.string() });

/** Flat, unlike the other responses of the portal. */
export const ProviderProfile = z
  .object({
    provider_id: z.uuid(),
    miner_id: z.uuid(),
    id: z.uuid(),
    miner_hotkey: z.string(),
    miner_coldkey: z.string().nullable(),
    email: z.string().nullable(),
    discord_id: z.string().nullable(),
    discord_connected: z.boolean(),
    extra_incentive_eligible: z.boolean(),
    machine_request_subscription: z.array(z.string()),
    opt_in_status: z.boolean(),
  })
  .meta({ id: 'ProviderProfile' });
export type ProviderProfile = z.output<typeof ProviderProfile>;

/** Signed like a log-in. */
export const SetPassword = PortalLogin.extend({
  new_password: z.string().min(8).max(128),
}).meta({ id: 'SetPassword' });
export type SetPassword = z.output<typeof SetPassword>;

export const SetEmail = z.object({ email: EmailAddress }).meta({ id: 'SetEmail' });

/** Short or full name of a GPU type; the shared configuration lists the known types. */
export const GpuType = displayName(MAX_GPU_TYPE_CHARS);

export const SetSubscription = z
  .object({ machine_request_subscription: z.array(GpuType).max(MAX_SUBSCRIPTIONS) })
  .meta({ id: 'SetSubscription' });

export const OptIn = z.object({ opt_in_status: z.boolean() }).meta({ id: 'OptIn' });

export const OptInAnswer = z
  .object({
    miner_hotkey: z.string(),
    miner_coldkey: z.string().nullable(),
    /** Address of the central miner server; null if none is configured. */
    central_miner_ip: z.string().nullable(),
    central_miner_port: z.int().nullable(),
    opt_in_status: z.boolean(),
  })
  .meta({ id: 'OptInAnswer' });
export type OptInAnswer = z.output<typeof OptInAnswer>;

const Count = z.int().min(0);

export const SyncAnswer = z
  .object({
    added: Count,
    updated: Count,
    removed: Count,
    /** Nodes missing from the server's list that remain because they have pods. */
    kept: Count,
  })
  .meta({ id: 'SyncAnswer' });
export type SyncAnswer = z.output<typeof SyncAnswer>;

export const CreateProviderToken = z
  .object({ name: displayName(100), expires_at: optional(IsoTime) })
  .meta({ id: 'CreateProviderToken' });
export type CreateProviderToken = z.output<typeof CreateProviderToken>;

export const ProviderTokenRow = z
  .object({
    id: z.uuid(),
    name: z.string(),
    masked_token: z.string(),
    created_at: NaiveTime,
    expires_at: NaiveTime.nullable(),
    last_used: NaiveTime.nullable(),
  })
  .meta({ id: 'ProviderToken' });
export type ProviderTokenRow = z.output<typeof ProviderTokenRow>;

export const NewProviderToken = ProviderTokenRow.extend({ token: z.string() }).meta({
  id: 'NewProviderToken',
});
export type NewProviderToken = z.output<typeof NewProviderToken>;

export const TokenParams = z.object({ id: Uuid });
