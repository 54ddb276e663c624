/**
 * Notification settings, thresholds of low-balance warnings, top-ups, transfers between accounts, and payouts of
 * referral earnings.
 */
import type { SqlDialect } from '../sql-dialects.ts';

export const aroundBalance = ({ int, serial, tableEnd }: SqlDialect): string[] => [
  `alter table accounts add column referral_payout_method text not null default 'balance'`,
  'alter table accounts add column referral_crypto_address text',
  'alter table accounts add column referral_crypto_network text',
  'alter table accounts add column payment_customer_id text',
  `create table notification_settings (
    account_id text primary key,
    id text not null unique,
    low_balance ${int} not null,
    notice_period ${int} not null,
    pod_failed ${int} not null,
    scheduled_removal ${int} not null,
    machine_request ${int} not null,
    created_at ${int} not null,
    updated_at ${int} not null
  ) ${tableEnd}`,
  `create table low_balance_thresholds (
    account_id text primary key,
    id text not null unique,
    threshold_uusd ${int} check (threshold_uusd >= 0),
    runway_minutes ${int} check (runway_minutes >= 0),
    created_at ${int} not null,
    updated_at ${int} not null
  ) ${tableEnd}`,
  `create table low_balance_marks (
    account_id text primary key,
    told_of_amount ${int} not null,
    told_of_runway ${int} not null,
    updated_at ${int} not null
  ) ${tableEnd}`,
  `create table auto_topups (
    account_id text primary key,
    id text not null unique,
    enabled ${int} not null,
    threshold_uusd ${int} not null check (threshold_uusd > 0),
    amount_uusd ${int} not null check (amount_uusd > 0),
    monthly_limit_uusd ${int} check (monthly_limit_uusd > 0),
    payment_method_id text,
    status text not null,
    declines ${int} not null,
    not_before ${int} not null,
    last_attempt_at ${int},
    last_error text,
    created_at ${int} not null,
    updated_at ${int} not null
  ) ${tableEnd}`,
  `create table topups (
    id text primary key,
    account_id text not null,
    processor text not null,
    external_id text unique,
    payment_method_id text not null,
    amount_uusd ${int} not null check (amount_uusd > 0),
    refunded_uusd ${int} not null default 0 check (refunded_uusd >= 0),
    disputed_uusd ${int} not null default 0 check (disputed_uusd >= 0),
    state text not null,
    attempts ${int} not null,
    due_at ${int} not null,
    last_error text,
    created_at ${int} not null,
    updated_at ${int} not null,
    check (refunded_uusd + disputed_uusd <= amount_uusd)
  ) ${tableEnd}`,
  // An account has at most one charge that has not ended.
  `create unique index topups_in_flight on topups (account_id) where state in ('charging', 'pending')`,
  `create index topups_due on topups (due_at) where state in ('charging', 'pending')`,
  'create index topups_by_account on topups (account_id, created_at)',
  `create table simulated_charges (
    charge_key text primary key,
    external_id text not null unique,
    payment_method_id text not null,
    amount_uusd ${int} not null,
    created_at ${int} not null,
    disputed_at ${int}
  ) ${tableEnd}`,
  `create table credit_transfers (
    seq ${serial},
    id text not null unique,
    sender_id text not null,
    recipient_id text not null,
    amount_uusd ${int} not null check (amount_uusd > 0),
    note text,
    sender_after_uusd ${int} not null,
    recipient_after_uusd ${int} not null,
    created_at ${int} not null,
    check (sender_id <> recipient_id)
  ) ${tableEnd}`,
  'create index credit_transfers_sent on credit_transfers (sender_id, seq)',
  'create index credit_transfers_received on credit_transfers (recipient_id, seq)',
];
