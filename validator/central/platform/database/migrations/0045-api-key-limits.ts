/** Scopes and budgets of API keys, and the requests that were rejected because of a budget. */
import type { SqlDialect } from '../sql-dialects.ts';

export const apiKeyLimits = ({ int, tableEnd }: SqlDialect): string[] => [
  'alter table api_keys add column scopes_json text',
  `create table api_key_budgets (
    api_key_id text primary key references api_keys (id),
    account_id text not null references accounts (id),
    daily_uusd ${int} check (daily_uusd >= 0),
    total_uusd ${int} check (total_uusd >= 0),
    stops_at ${int},
    check (daily_uusd is not null or total_uusd is not null)
  ) ${tableEnd}`,
  'create index api_key_budgets_of on api_key_budgets (account_id)',
  `create table api_key_refusals (
    id text primary key,
    api_key_id text not null references api_keys (id),
    budget_window text not null check (budget_window in ('day', 'total')),
    route text not null,
    amount_uusd ${int} not null,
    budget_uusd ${int} not null,
    spent_uusd ${int} not null,
    created_at ${int} not null
  ) ${tableEnd}`,
  'create index api_key_refusals_of on api_key_refusals (api_key_id, created_at)',
  `create index pods_by_key on pods (created_by_api_key_id)
    where created_by_api_key_id is not null`,
  // Transfers that were requested with a key count towards the budget of the key.
  `create index ledger_transfers_by_actor on ledger_groups (actor) where cause_type = 'transfer'`,
];
