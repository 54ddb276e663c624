/** Notices of nodes, and mails to providers. */
import type { SqlDialect } from '../sql-dialects.ts';

export const notices = ({ int, tableEnd, stampOneMore }: SqlDialect): string[] => [
  `create table notices (
    id text primary key,
    executor_id text not null references executors (id),
    start_at ${int} not null,
    start_text text not null,
    minutes ${int} check (minutes between 1 and 60),
    permanent ${int} not null check (permanent in (0, 1)),
    reason text,
    state text not null check (state in ('open', 'started', 'done', 'cancelled')),
    created_at ${int} not null,
    updated_at ${int} not null,
    check ((minutes is null) = (permanent = 1))
  ) ${tableEnd}`,
  `create unique index notices_standing on notices (executor_id) where state in ('open', 'started')`,
  'create index notices_by_node on notices (executor_id, start_at)',
  // The present notice in the form that responses contain, because every response about a node or pod includes it.
  'alter table executors add column notice_json text',
  ...stampOneMore('executors', 'notice_json'),
  'drop index mails_due',
  'drop index mails_by_age',
  'drop index mails_by_account',
  'alter table mails rename to mails_before',
  `create table mails (
    id text primary key,
    account_id text references accounts (id),
    provider_id text references providers (id),
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
    updated_at ${int} not null,
    check ((account_id is null) <> (provider_id is null))
  ) ${tableEnd}`,
  `insert into mails (id, account_id, dedupe_key, kind, to_address, sealed, state, due_at, useful_until,
      attempts, last_error, created_at, updated_at)
    select id, account_id, dedupe_key, kind, to_address, sealed, state, due_at, useful_until,
      attempts, last_error, created_at, updated_at from mails_before`,
  'drop table mails_before',
  "create index mails_due on mails (due_at) where state = 'waiting'",
  'create index mails_by_age on mails (created_at)',
  'create index mails_by_account on mails (account_id)',
  'create index mails_by_provider on mails (provider_id)',
];
