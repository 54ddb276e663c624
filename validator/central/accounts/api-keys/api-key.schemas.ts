/** Wire schemas of API keys, their scopes and refused requests. */
import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import type { FieldNames } from '../../platform/edge/field-names.ts';
import { KEY_SCOPES } from '../../platform/identity.ts';
import { CREATED_AT, UPDATED_AT } from '../../platform/openapi/field-texts.ts';
import { displayName, IsoTime, NaiveTime, optional, Usd, usdAmount } from '../../platform/wire.ts';

const KeyName = displayName(100);
const MAX_BUDGET_USD = 1_000_000_000;
const Budget = usdAmount({ min: 0, max: MAX_BUDGET_USD });
const Scope = z.enum(KEY_SCOPES);

export const ApiKey = z
  .object(
    described(
      {
        id: z.uuid(),
        user_id: z.uuid(),
        name: z.string(),
        masked_key: z.string(),
        key: z.string().nullable(),
        is_active: z.boolean(),
        created_at: NaiveTime,
        updated_at: NaiveTime,
        expires_at: NaiveTime.nullable(),
        last_used: NaiveTime.nullable(),
        scopes: z.array(Scope).nullable(),
        workspace_id: z.null(),
        created_by_user_id: z.uuid(),
        daily_budget_usd: Usd.nullable(),
        max_budget_usd: Usd.nullable(),
        spent_today_usd: Usd,
        spent_total_usd: Usd,
        pod_visibility: z.literal('account'),
        pods_count: z.int(),
      },
      {
        id: 'Id of the key.',
        user_id: 'Id of the account.',
        name: 'Name that the account gave to the key.',
        masked_key: 'First 10 and last 5 characters of the key.',
        key: 'The full key, for callers with a session; null for callers with a key, and if retrieval is disabled.',
        is_active: 'False if the key was deactivated or has expired.',
        created_at: CREATED_AT,
        updated_at: UPDATED_AT,
        expires_at: 'Time from which the key is rejected (UTC); null: never.',
        last_used: 'Time of the last request with the key (UTC), to the minute; null: never.',
        scopes: 'Rights of the key, fixed at its creation; null for all rights.',
        workspace_id: 'Always null: there are no workspaces.',
        created_by_user_id: 'Id of the account.',
        daily_budget_usd: 'Limit in USD per day, which begins at 00:00 UTC; null for no limit.',
        max_budget_usd: 'Limit in USD for the lifetime of the key; null for no limit.',
        spent_today_usd:
          'USD since 00:00 UTC: charges for pods that the key rented, and transfers by the key.',
        spent_total_usd:
          'USD since the creation of the key: charges for pods that the key rented, and transfers by the key.',
        pod_visibility: 'Pods that the key may read; always `account`, all pods of the account.',
        pods_count: 'Number of pods that the key rented and that are not deleted.',
      },
    ),
  )
  .meta({ id: 'ApiKey' });
export type ApiKeyResponse = z.output<typeof ApiKey>;

export const CreateApiKey = z
  .object(
    described(
      {
        name: KeyName,
        expires_at: optional(IsoTime),
        scopes: optional(z.array(Scope).min(1).max(KEY_SCOPES.length)),
        daily_budget_usd: optional(Budget),
        max_budget_usd: optional(Budget),
      },
      {
        name: "Name for the account's own use, 1 to 100 characters.",
        expires_at: 'Time from which the key is rejected; absent: never.',
        scopes: 'Rights of the key, which cannot be changed later; absent for all rights.',
        daily_budget_usd: 'Limit in USD per day, which begins at 00:00 UTC; absent for no limit.',
        max_budget_usd: 'Limit in USD for the lifetime of the key; absent for no limit.',
      },
    ),
  )
  .meta({
    id: 'CreateApiKey',
    example: { name: 'ci', scopes: ['read', 'rent'], daily_budget_usd: 20, max_budget_usd: 500 },
  });
export type CreateApiKey = z.output<typeof CreateApiKey>;

export const UpdateApiKey = z
  .object(
    described(
      {
        name: optional(KeyName),
        is_active: optional(z.boolean()),
        expires_at: IsoTime.nullish(),
        daily_budget_usd: Budget.nullish(),
        max_budget_usd: Budget.nullish(),
      },
      {
        name: 'New name, 1 to 100 characters.',
        is_active: 'False deactivates the key, true activates it.',
        expires_at: 'New time from which the key is rejected; null: never.',
        daily_budget_usd: 'New limit in USD per day (UTC); null for no limit.',
        max_budget_usd: 'New limit in USD for the lifetime of the key; null for no limit.',
      },
    ),
  )
  .meta({ id: 'UpdateApiKey', example: { name: 'ci', daily_budget_usd: 30 } });
export type UpdateApiKey = z.output<typeof UpdateApiKey>;

/** If misspelt budgets and scopes were ignored, the key would have no limits. */
export const KEY_FIELD_NAMES: FieldNames = {
  synonyms: {
    expires: 'expires_at',
    budget: 'max_budget_usd',
    max_budget: 'max_budget_usd',
    total_budget_usd: 'max_budget_usd',
    daily_budget: 'daily_budget_usd',
    budget_per_day: 'daily_budget_usd',
  },
  echoed: Object.keys(ApiKey.shape),
};

const ScopeRow = z.object(
  described(
    {
      scope: Scope,
      title: z.string(),
      description: z.string(),
      can: z.array(z.string()),
      route_families: z.array(z.string()),
      default: z.boolean(),
    },
    {
      scope: 'Name of the scope.',
      title: 'Title for people.',
      description: 'What the scope allows, in one sentence.',
      can: 'Actions that the scope allows.',
      route_families: 'First segments of the paths whose routes may require it.',
      default: 'True if a key without a list of scopes has this scope.',
    },
  ),
);

const VisibilityRow = z.object(
  described(
    { value: z.string(), description: z.string() },
    {
      value: 'Value of `pod_visibility`.',
      description: 'Pods that a key with this value may read.',
    },
  ),
);

export const ApiKeyScopes = z
  .object(
    described(
      {
        available: z.boolean(),
        scopes: z.array(ScopeRow),
        pod_visibility: z.array(VisibilityRow),
        money_routes: z.array(z.string()),
      },
      {
        available: 'True: scopes are enforced.',
        scopes: 'Every scope that a key may have.',
        pod_visibility: 'Every value that `pod_visibility` of a key may have.',
        money_routes: 'Paths whose requests count against the budgets of a key.',
      },
    ),
  )
  .meta({ id: 'ApiKeyScopes' });

const RefusalRow = z.object(
  described(
    {
      id: z.uuid(),
      api_key_id: z.uuid(),
      event: z.literal('budget_exceeded'),
      created_at: NaiveTime,
      window: z.enum(['day', 'total']),
      route: z.string(),
      amount_usd: Usd,
      budget_usd: Usd,
      spent_usd: Usd,
    },
    {
      id: 'Id of the refusal.',
      api_key_id: 'Id of the key.',
      event: 'Reason of the refusal.',
      created_at: 'Time of the request (UTC).',
      window: 'The exceeded budget: per day, or for the lifetime of the key.',
      route:
        'Method and path of the request, with the names of the path parameters instead of their values.',
      amount_usd: 'USD that the request needed.',
      budget_usd: 'The exceeded budget in USD.',
      spent_usd: 'USD that were spent of the budget.',
    },
  ),
);

export const ApiKeyRefusals = z
  .object(
    described(
      { refusals: z.array(RefusalRow) },
      { refusals: 'The last 100 refusals, newest first.' },
    ),
  )
  .meta({ id: 'ApiKeyRefusals' });
