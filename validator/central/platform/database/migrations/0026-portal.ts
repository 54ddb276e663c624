/**
 * The provider portal: passwords, chat links, tokens and subscriptions of providers, and the time at which an offer
 * changed.
 */
import type { SqlDialect } from '../sql-dialects.ts';

export const portal = ({ int, tableEnd }: SqlDialect): string[] => [
  'alter table providers add column password_hash text',
  'alter table providers add column chat_user_id text',
  'alter table providers add column chat_username text',
  `create unique index providers_by_chat_user on providers (chat_user_id)
    where chat_user_id is not null`,
  `create table provider_subscriptions (
    provider_id text not null references providers (id),
    gpu_class text not null,
    primary key (provider_id, gpu_class)
  ) ${tableEnd}`,
  'create index provider_subscriptions_by_class on provider_subscriptions (gpu_class)',
  `create table provider_tokens (
    id text primary key,
    provider_id text not null references providers (id),
    name text not null,
    token_hash text not null unique,
    suffix text not null,
    created_at ${int} not null,
    expires_at ${int},
    last_used_at ${int}
  ) ${tableEnd}`,
  'create index provider_tokens_by_provider on provider_tokens (provider_id)',
  // Providers can link chat accounts, too. Unfinished links expire after ten minutes, so none is migrated.
  'drop table chat_link_states',
  `create table chat_link_states (
    state_hash text primary key,
    owner_id text not null,
    verifier_sealed text not null,
    created_at ${int} not null,
    expires_at ${int} not null
  ) ${tableEnd}`,
  'create index chat_link_states_by_owner on chat_link_states (owner_id)',
  `alter table executors add column offer_changed_at ${int}`,
];
