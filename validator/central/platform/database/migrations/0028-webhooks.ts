/** Webhooks and the log of their deliveries. */
import type { SqlDialect } from '../sql-dialects.ts';

export const webhooks = ({ int, tableEnd }: SqlDialect): string[] => [
  `create table webhooks (
    id text primary key,
    account_id text not null references accounts (id),
    url text not null,
    description text not null,
    events_json text not null,
    secret_sealed text not null,
    previous_sealed text,
    previous_until ${int},
    is_enabled ${int} not null check (is_enabled in (0, 1)),
    disabled_reason text,
    after_feed_no ${int} not null,
    attempts ${int} not null,
    retry_at ${int} not null,
    failing_since ${int},
    lease_until ${int} not null,
    lease_token text,
    created_at ${int} not null,
    updated_at ${int} not null
  ) ${tableEnd}`,
  'create index webhooks_by_account on webhooks (account_id)',
  'create index webhooks_enabled on webhooks (retry_at) where is_enabled = 1',
  `create table webhook_deliveries (
    id text primary key,
    webhook_id text not null references webhooks (id),
    event_id text not null,
    event_type text not null,
    state text not null check (state in ('waiting', 'delivered', 'failed')),
    attempts ${int} not null,
    status ${int},
    error text,
    duration_ms ${int} not null,
    created_at ${int} not null,
    updated_at ${int} not null,
    unique (webhook_id, event_id)
  ) ${tableEnd}`,
  'create index webhook_deliveries_in_time on webhook_deliveries (webhook_id, created_at)',
  'create index webhook_deliveries_by_age on webhook_deliveries (created_at)',
];
