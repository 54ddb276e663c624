/** Accounts at the payment processor that receive payouts, and payouts to them. */
import type { SqlDialect } from '../sql-dialects.ts';

export const payoutAccounts = ({ int, tableEnd }: SqlDialect): string[] => [
  'alter table accounts add column payout_account_id text',
  `alter table accounts add column payout_onboarded_at ${int}`,
  'create unique index accounts_payout on accounts (payout_account_id)',
  `create table simulated_onboardings (
    payout_account_id text primary key,
    completed_at ${int}
  ) ${tableEnd}`,
  // A new table replaces the old one, because SQLite cannot change the check of a column.
  'alter table payouts rename to payouts_before',
  'drop index payouts_open',
  'drop index payouts_due',
  'drop index payouts_by_party',
  'drop index payouts_by_time',
  `create table payouts (
    id text primary key,
    party text not null,
    method text not null check (method in ('hotkey', 'crypto', 'balance', 'stripe_connect')),
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
  `insert into payouts select id, party, method, address, network, processor, external_id, amount_uusd, hold_id,
    covers_until_ms, state, attempts, due_at, last_error, created_at, updated_at from payouts_before`,
  'drop table payouts_before',
  `create unique index payouts_open on payouts (party) where state in ('requested', 'pending')`,
  `create index payouts_due on payouts (due_at) where state in ('requested', 'pending')`,
  'create index payouts_by_party on payouts (party, created_at)',
  'create index payouts_by_time on payouts (created_at)',
];
