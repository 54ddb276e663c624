/** Wire schemas of API keys, and the catalogue of scopes. */
import { z } from 'zod';
import { displayName, IsoTime, NaiveTime, optional, Usd } from '../../platform/wire.ts';

const KeyName = displayName(100);

export const ApiKey = z
  .object({
    id: z.uuid(),
    user_id: z.uuid(),
    name: z.string(),
    masked_key: z.string(),
    /** The full key, for callers with a session; null for callers with a key, and if retrieval is disabled. */
    key: z.string().nullable(),
    /** False once deactivated or expired. */
    is_active: z.boolean(),
    created_at: NaiveTime,
    updated_at: NaiveTime,
    expires_at: NaiveTime.nullable(),
    last_used: NaiveTime.nullable(),
    scopes: z.null(),
    workspace_id: z.null(),
    created_by_user_id: z.uuid(),
    daily_budget_usd: z.null(),
    max_budget_usd: z.null(),
    spent_today_usd: Usd,
    spent_total_usd: Usd,
    pod_visibility: z.literal('account'),
    pods_count: z.int(),
  })
  .meta({ id: 'ApiKey' });
export type ApiKeyResponse = z.output<typeof ApiKey>;

export const CreateApiKey = z
  .object({ name: KeyName, expires_at: optional(IsoTime) })
  .meta({ id: 'CreateApiKey' });
export type CreateApiKey = z.output<typeof CreateApiKey>;

/** `expires_at` null: the key never expires. */
export const UpdateApiKey = z
  .object({
    name: optional(KeyName),
    is_active: optional(z.boolean()),
    expires_at: IsoTime.nullish(),
  })
  .meta({ id: 'UpdateApiKey' });
export type UpdateApiKey = z.output<typeof UpdateApiKey>;

export const ApiKeyScopes = z
  .object({
    available: z.boolean(),
    scopes: z.array(
      z.object({
        scope: z.string(),
        title: z.string(),
        description: z.string(),
        can: z.array(z.string()),
        route_families: z.array(z.string()),
        default: z.boolean(),
      }),
    ),
    pod_visibility: z.array(z.object({ value: z.string(), description: z.string() })),
    money_routes: z.array(z.string()),
  })
  .meta({ id: 'ApiKeyScopes' });

export const ApiKeyRefusals = z
  .object({
    refusals: z.array(
      z.object({
        id: z.uuid(),
        api_key_id: z.uuid(),
        event: z.string(),
        created_at: NaiveTime,
        window: z.string(),
        route: z.string(),
        amount_usd: Usd,
        budget_usd: Usd,
        spent_usd: Usd,
      }),
    ),
  })
  .meta({ id: 'ApiKeyRefusals' });

/** Catalogue of scopes. Scopes are not enforced yet: every key has all rights. */
export const API_KEY_SCOPES: z.output<typeof ApiKeyScopes> = {
  available: false,
  scopes: [
    {
      scope: 'read',
      title: 'Read',
      description: 'Read everything of the account but secrets.',
      can: ['list nodes, pods, templates and keys', 'read logs, metrics and events'],
      route_families: ['/executors', '/pods', '/templates', '/ssh-keys', '/users/me'],
      default: true,
    },
    {
      scope: 'rent',
      title: 'Rent',
      description: 'Rent nodes and end what was rented.',
      can: ['rent a node', 'reboot, edit and delete pods'],
      route_families: ['/executors', '/pods'],
      default: true,
    },
    {
      scope: 'manage',
      title: 'Manage',
      description: 'Change templates, SSH keys and settings.',
      can: ['create, change and delete templates and SSH keys', 'change preferences'],
      route_families: ['/templates', '/ssh-keys', '/users/me'],
      default: true,
    },
    {
      scope: 'billing',
      title: 'Billing',
      description: 'Move money.',
      can: ['transfer credits', 'configure auto top-up'],
      route_families: ['/users/me/transfer-credits', '/users/me/auto-top-up'],
      default: true,
    },
  ],
  pod_visibility: [{ value: 'account', description: 'Every pod of the account' }],
  money_routes: ['/executors/{executor_uuid}/rent'],
};
