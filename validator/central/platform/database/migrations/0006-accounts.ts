/** Profiles, mails, single-use tokens, uploads and links to a chat platform. */
import type { SqlDialect } from '../sql-dialects.ts';

export const accountsWhole = ({ int, tableEnd }: SqlDialect): string[] => [
  'alter table accounts add column company_name text',
  'alter table accounts add column avatar_url text',
  `alter table accounts add column disable_incoming_connections ${int} not null default 0`,
  "alter table accounts add column termination_hours_json text not null default '{}'",
  `alter table accounts add column signup_credit_at ${int}`,
  'alter table accounts add column chat_user_id text',
  'alter table accounts add column chat_username text',
  `alter table accounts add column deleted_at ${int}`,
  // Versions without this column granted the credit at sign-up.
  'update accounts set signup_credit_at = created_at where email_verified_at is not null',
  `create unique index accounts_by_chat_user on accounts (chat_user_id)
    where chat_user_id is not null`,
  `create table signup_credits (
    email_hash text primary key,
    granted_at ${int} not null
  ) ${tableEnd}`,
  `create table account_tokens (
    token_hash text primary key,
    account_id text not null references accounts (id),
    purpose text not null check (purpose in ('verify-email', 'reset-password')),
    email_norm text not null,
    created_at ${int} not null,
    expires_at ${int} not null
  ) ${tableEnd}`,
  'create index account_tokens_by_account on account_tokens (account_id, purpose)',
  'create index account_tokens_by_expiry on account_tokens (expires_at)',
  `create table mails (
    id text primary key,
    account_id text not null references accounts (id),
    dedupe_key text not null unique,
    kind text not null,
    to_address text not null,
    sealed text not null,
    state text not null check (state in ('kept', 'waiting', 'sent', 'failed', 'expired')),
    due_at ${int} not null,
    useful_until ${int} not null,
    attempts ${int} not null,
    last_error text,
    created_at ${int} not null,
    updated_at ${int} not null
  ) ${tableEnd}`,
  "create index mails_due on mails (due_at) where state = 'waiting'",
  'create index mails_by_age on mails (created_at)',
  'create index mails_by_account on mails (account_id)',
  `create table uploads (
    object_key text primary key,
    account_id text not null references accounts (id),
    purpose text not null check (purpose in ('avatar', 'feedback', 'template_readme')),
    content_type text not null,
    size_bytes ${int} not null check (size_bytes > 0),
    created_at ${int} not null,
    expires_at ${int} not null,
    stored_at ${int}
  ) ${tableEnd}`,
  'create index uploads_by_account on uploads (account_id)',
  'create index uploads_unused on uploads (expires_at) where stored_at is null',
  `create table chat_link_states (
    state_hash text primary key,
    account_id text not null references accounts (id),
    verifier_sealed text not null,
    created_at ${int} not null,
    expires_at ${int} not null
  ) ${tableEnd}`,
  'create index chat_link_states_by_account on chat_link_states (account_id)',
];
