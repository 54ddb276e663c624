/** Payouts to providers and referrers, and the records of the simulated payout processor. */
import type { SqlDialect } from '../sql-dialects.ts';

export const payouts = ({ int, tableEnd }: SqlDialect): string[] => [
  `create table payouts (
    id text primary key,
    party text not null,
    method text not null check (method in ('hotkey', 'crypto', 'balance')),
    address text not null,
    network text,
    processor text,
    external_id text,
    amount_uusd ${int} not null check (amount_uusd > 0),
    hold_id text,
    covers_until_ms ${int} not null,
    state text not null check (state in ('requested', 'pending', 'paid', 'voided')),
    attempts ${int} not null,
    due_at ${int} not null,
    last_error text,
    created_at ${int} not null,
    updated_at ${int} not null,
    check ((method = 'balance') = (hold_id is null))
  ) ${tableEnd}`,
  // A recipient has at most one open payout.
  `create unique index payouts_open on payouts (party) where state in ('requested', 'pending')`,
  `create index payouts_due on payouts (due_at) where state in ('requested', 'pending')`,
  'create index payouts_by_party on payouts (party, created_at)',
  'create index payouts_by_time on payouts (created_at)',
  `create table simulated_payouts (
    payout_key text primary key,
    external_id text not null unique,
    behaviour text not null,
    amount_uusd ${int} not null,
    asked ${int} not null,
    created_at ${int} not null
  ) ${tableEnd}`,
];
