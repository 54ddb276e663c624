/** Warnings before the removal of a pod, the reason of its end, feedback, and support channels. */
import type { SqlDialect } from '../sql-dialects.ts';

export const podStory = ({ int, tableEnd }: SqlDialect): string[] => [
  `alter table pods add column removal_warning_at ${int}`,
  // The first warning is an hour before the removal. Only one warning is sent for all that were missed.
  `update pods set removal_warning_at = removal_at - 3600000
    where removal_at is not null and delete_requested_at is null and ended_at is null`,
  `create index pods_to_warn_of on pods (removal_warning_at)
    where ended_at is null and removal_warning_at is not null`,
  `create index pods_ended_by_account on pods (account_id, ended_at, id)
    where ended_at is not null`,
  `create table feedback (
    id text primary key,
    account_id text not null references accounts (id),
    pod_id text not null references pods (id),
    rating ${int} not null check (rating between 1 and 5),
    category text,
    comment text,
    contact_ok ${int} not null check (contact_ok in (0, 1)),
    attachment_keys_json text not null,
    created_at ${int} not null
  ) ${tableEnd}`,
  'create index feedback_by_pod on feedback (pod_id)',
  'create index feedback_by_account on feedback (account_id)',
  `create table support_channels (
    pod_id text primary key references pods (id),
    id text not null unique,
    account_id text not null references accounts (id),
    chat_user_id text,
    name text not null,
    topic text,
    message text,
    created_at ${int} not null
  ) ${tableEnd}`,
  'create index support_channels_by_account on support_channels (account_id)',
];
