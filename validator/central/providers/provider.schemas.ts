/** Requests and responses of the portal's provider routes. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { CREATED_AT, UPDATED_AT } from '../platform/openapi/field-texts.ts';
import { displayName, EmailAddress, IsoTime, NaiveTime, optional, Uuid } from '../platform/wire.ts';

const MAX_SUBSCRIPTIONS = 100;
const MAX_GPU_TYPE_CHARS = 64;
const MAX_PASSWORD_CHARS = 128;

export const PortalLogin = z
  .object(
    described(
      { miner_hotkey: Hotkey, message: z.string().max(64), signature: z.string().max(256) },
      {
        miner_hotkey: 'ss58 of the provider.',
        message:
          "Present time as unix seconds in decimal notation. It may differ from the server's time by at most 300 seconds.",
        signature:
          'sr25519 signature by the hotkey over the message, or over the message in `<Bytes>`; hex with or without `0x`.',
      },
    ),
  )
  .meta({
    id: 'PortalLogin',
    example: {
      miner_hotkey: '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY',
      message: '1795000000',
      signature: '0x00',
    },
  });
export type PortalLogin = z.output<typeof PortalLogin>;

export const PortalPasswordLogin = z
  .object(
    described(
      { miner_hotkey: Hotkey, password: z.string().max(MAX_PASSWORD_CHARS) },
      {
        miner_hotkey: 'ss58 of the provider.',
        password: 'Password from `POST /auth/set-password`.',
      },
    ),
  )
  .meta({
    id: 'PortalPasswordLogin',
    example: {
      miner_hotkey: '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY',
      password: 'correct horse battery',
    },
  });
export type PortalPasswordLogin = z.output<typeof PortalPasswordLogin>;

export const Miner = z
  .object(
    described(
      {
        id: z.uuid(),
        miner_hotkey: z.string(),
        miner_coldkey: z.string(),
        email: z.string().nullable(),
        discord_id: z.string().nullable(),
        machine_request_subscription: z.array(z.string()),
        created_at: z.string(),
        updated_at: z.string(),
      },
      {
        id: 'Id of the provider.',
        miner_hotkey: 'ss58 of the provider.',
        miner_coldkey: 'ss58 of the coldkey; the hotkey if the coldkey is unknown.',
        email: 'E-mail address; null for none.',
        discord_id: 'Id of the linked chat user; null for none.',
        machine_request_subscription:
          'GPU types for which the provider receives mails about machine requests.',
        created_at: CREATED_AT,
        updated_at: UPDATED_AT,
      },
    ),
  )
  .meta({ id: 'Miner', description: 'A provider, in the form that the log-in returns.' });
export type Miner = z.output<typeof Miner>;

export const PortalSession = z.object(
  described(
    { miner: Miner, token: z.string() },
    {
      miner: 'The provider.',
      token: 'Session token, valid for 7 days; sent as `Authorization: Bearer …`.',
    },
  ),
);

/** Does not have the envelope of other responses of the portal. */
export const ProviderProfile = z
  .object(
    described(
      {
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
      },
      {
        provider_id: 'Id of the provider.',
        miner_id: 'Same as `provider_id`.',
        id: 'Same as `provider_id`.',
        miner_hotkey: 'ss58 of the provider.',
        miner_coldkey: 'ss58 of the coldkey; null if unknown.',
        email: 'E-mail address; null for none.',
        discord_id: 'Id of the linked chat user; null for none.',
        discord_connected: 'True if a chat user is linked.',
        extra_incentive_eligible:
          'True if a chat user is linked. The extra incentive requires a linked chat user.',
        machine_request_subscription:
          'GPU types for which the provider receives mails about machine requests.',
        opt_in_status: 'True if the provider offers its nodes.',
      },
    ),
  )
  .meta({ id: 'ProviderProfile', description: 'The profile of a provider.' });
export type ProviderProfile = z.output<typeof ProviderProfile>;

/** Signed in the same way as a log-in. */
export const SetPassword = PortalLogin.extend(
  described(
    { new_password: z.string().min(8).max(MAX_PASSWORD_CHARS) },
    { new_password: 'New password of 8 to 128 characters.' },
  ),
).meta({
  id: 'SetPassword',
  example: {
    miner_hotkey: '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY',
    message: '1795000000',
    signature: '0x00',
    new_password: 'correct horse battery',
  },
});
export type SetPassword = z.output<typeof SetPassword>;

export const SetEmail = z
  .object(described({ email: EmailAddress }, { email: 'E-mail address for notifications.' }))
  .meta({ id: 'SetEmail', example: { email: 'provider@example.com' } });

/** Short or full name of a GPU type. The shared configuration lists the known types. */
export const GpuType = displayName(MAX_GPU_TYPE_CHARS);

export const SetSubscription = z
  .object(
    described(
      { machine_request_subscription: z.array(GpuType).max(MAX_SUBSCRIPTIONS) },
      {
        machine_request_subscription:
          'At most 100 GPU types for which the provider receives mails about machine requests; empty ends the subscription.',
      },
    ),
  )
  .meta({ id: 'SetSubscription', example: { machine_request_subscription: ['H100', 'A100'] } });

export const OptIn = z
  .object(
    described(
      { opt_in_status: z.boolean() },
      { opt_in_status: "True offers the provider's nodes; false stops new rentals." },
    ),
  )
  .meta({ id: 'OptIn', example: { opt_in_status: true } });

export const OptInAnswer = z
  .object(
    described(
      {
        miner_hotkey: z.string(),
        miner_coldkey: z.string(),
        central_miner_ip: z.string(),
        central_miner_port: z.int(),
        opt_in_status: z.boolean(),
      },
      {
        miner_hotkey: 'ss58 of the provider.',
        miner_coldkey: 'ss58 of the coldkey; the hotkey if the coldkey is unknown.',
        central_miner_ip:
          "Host of the central miner server; the validator's gateway if none is configured.",
        central_miner_port: 'Port of the server at `central_miner_ip`.',
        opt_in_status: 'True if the provider offers its nodes.',
      },
    ),
  )
  .meta({ id: 'OptInAnswer', description: 'Result of an opt-in or opt-out.' });
export type OptInAnswer = z.output<typeof OptInAnswer>;

const Count = z.int().min(0);

export const SyncAnswer = z
  .object(
    described(
      { added: Count, updated: Count, removed: Count, kept: Count },
      {
        added: 'Number of nodes that were added.',
        updated: 'Number of nodes that were changed.',
        removed: 'Number of nodes that were removed.',
        kept: 'Number of nodes that the server does not list and that remain because they have pods.',
      },
    ),
  )
  .meta({ id: 'SyncAnswer', description: 'Result of a synchronisation.' });
export type SyncAnswer = z.output<typeof SyncAnswer>;

export const CreateProviderToken = z
  .object(
    described(
      { name: displayName(100), expires_at: optional(IsoTime) },
      {
        name: 'Name of the token, 1 to 100 characters.',
        expires_at:
          'Time of expiry (ISO 8601; UTC if it has no offset); absent if the token does not expire.',
      },
    ),
  )
  .meta({
    id: 'CreateProviderToken',
    example: { name: 'ansible', expires_at: '2027-06-01T00:00:00Z' },
  });
export type CreateProviderToken = z.output<typeof CreateProviderToken>;

export const ProviderTokenRow = z
  .object(
    described(
      {
        id: z.uuid(),
        name: z.string(),
        masked_token: z.string(),
        created_at: NaiveTime,
        expires_at: NaiveTime.nullable(),
        last_used: NaiveTime.nullable(),
      },
      {
        id: 'Id of the token.',
        name: 'Name of the token.',
        masked_token: 'First and last characters of the token.',
        created_at: CREATED_AT,
        expires_at: 'Time of expiry (UTC); null if the token does not expire.',
        last_used: 'Time of the last use (UTC); null if the token was never used.',
      },
    ),
  )
  .meta({ id: 'ProviderToken', description: 'A provider token, masked.' });
export type ProviderTokenRow = z.output<typeof ProviderTokenRow>;

export const NewProviderToken = ProviderTokenRow.extend(
  described({ token: z.string() }, { token: 'The full token. Only this response contains it.' }),
).meta({
  id: 'NewProviderToken',
  description: 'A new provider token.',
});
export type NewProviderToken = z.output<typeof NewProviderToken>;

export const TokenParams = z.object({ id: Uuid });
