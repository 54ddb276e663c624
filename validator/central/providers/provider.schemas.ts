/** What the provider portal takes and answers (contract 10). */
import { z } from 'zod';
import { Hotkey } from '#shared/signing/hotkey.ts';
import {
  displayName,
  EmailAddress,
  IsoTime,
  NaiveTime,
  optional,
  queryNumber,
  Uuid,
} from '../platform/wire.ts';

const MAX_PAGE = 1_000_000;
const MAX_LIMIT = 1_000;
const DEFAULT_LIMIT = 20;
const MAX_SUBSCRIPTIONS = 100;
const MAX_GPU_TYPE_CHARS = 64;

/** `{success, data, timestamp}` around one object. */
export function portalAnswer<Data extends z.ZodType>(data: Data) {
  return z.object({ success: z.literal(true), data, timestamp: z.string() });
}

/** The same around a page of a list. */
export function portalList<Item extends z.ZodType>(item: Item) {
  return z.object({
    success: z.literal(true),
    data: z.array(item),
    total: z.int(),
    page: z.int(),
    limit: z.int(),
    pagination: z.object({
      page: z.int(),
      limit: z.int(),
      total: z.int(),
      total_pages: z.int(),
    }),
    timestamp: z.string(),
  });
}

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

/** Flat, unlike the other answers of the portal. */
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

/** The same signature as for a log-in, and what is set by it. */
export const SetPassword = PortalLogin.extend({
  new_password: z.string().min(8).max(128),
}).meta({ id: 'SetPassword' });
export type SetPassword = z.output<typeof SetPassword>;

export const SetEmail = z.object({ email: EmailAddress }).meta({ id: 'SetEmail' });

/** As providers name it; known ones are in the shared configuration. */
export const GpuType = displayName(MAX_GPU_TYPE_CHARS);

export const SetSubscription = z
  .object({ machine_request_subscription: z.array(GpuType).max(MAX_SUBSCRIPTIONS) })
  .meta({ id: 'SetSubscription' });

export const OptIn = z.object({ opt_in_status: z.boolean() }).meta({ id: 'OptIn' });

export const OptInAnswer = z
  .object({
    miner_hotkey: z.string(),
    miner_coldkey: z.string().nullable(),
    /** Of the central miner server; null where there is none. */
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
    /** Nodes that are not on the other list and stay, for there are pods on them. */
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

/** Of lists without filters. */
export const PageQuery = z.object({
  page: queryNumber(z.int().min(1).max(MAX_PAGE).default(1)),
  limit: queryNumber(z.int().min(1).max(MAX_LIMIT).default(DEFAULT_LIMIT)),
});
export type PageQuery = z.output<typeof PageQuery>;

/** Of the catalogue, which is whole unless asked for in parts. */
export const MachinePageQuery = PageQuery.extend({
  limit: queryNumber(z.int().min(1).max(MAX_LIMIT).default(MAX_LIMIT)),
});

export const SharedConfig = z
  .object({
    machine_prices: z.record(z.string(), z.number()),
    machine_min_price_rate: z.number(),
    machine_max_price_rate: z.number(),
    platform_fee_rate: z.number(),
  })
  .meta({ id: 'SharedConfig' });
