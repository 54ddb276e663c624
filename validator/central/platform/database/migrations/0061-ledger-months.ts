/**
 * Closed months of the ledger, and their archives. The triggers of the ledger permit the deletion of the rows that an
 * archive contains: postings of use and of referrals, in groups that cannot be posted again.
 */
import type { SqlDialect } from '../sql-dialects.ts';

/** Causes of the groups that an archive removes from the database. */
const REMOVED = `('usage', 'referral', 'referral-back')`;

const TRANSFER_ARCHIVED = `exists (select 1 from ledger_archives, ledger_groups
  where ledger_archives.first_seq <= old.seq and old.seq <= ledger_archives.last_seq
    and ledger_groups.id = old.group_id and ledger_groups.cause_type in ${REMOVED})`;
/** A group that still has transfers cannot be deleted, because they reference it. */
const GROUP_ARCHIVED = `old.cause_type in ${REMOVED} and exists (select 1 from ledger_archives
  where ledger_archives.first_group <= old.id and old.id <= ledger_archives.last_group)`;
const TICK_ARCHIVED = `not exists (select 1 from ledger_groups
  where ledger_groups.id = cast(old.group_id as bigint))`;

export const ledgerMonths = ({
  int,
  tableEnd,
  forbidChanges,
  permitDeletes,
}: SqlDialect): string[] => [
  `create table ledger_months (
    month text primary key,
    first_seq ${int} not null,
    last_seq ${int} not null,
    transfers ${int} not null check (transfers >= 0),
    amount_uusd text not null,
    rows_hash text not null,
    balance_hash text not null,
    chain_hash text not null,
    closed_at ${int} not null
  ) ${tableEnd}`,
  ...forbidChanges('ledger_months'),
  `create table ledger_month_balances (
    month text not null references ledger_months (month),
    id text not null,
    debits_posted ${int} not null,
    credits_posted ${int} not null,
    debits_pending ${int} not null,
    primary key (month, id)
  ) ${tableEnd}`,
  ...forbidChanges('ledger_month_balances'),
  `create table ledger_archives (
    month text primary key references ledger_months (month),
    file text not null,
    first_seq ${int} not null,
    last_seq ${int} not null,
    first_group ${int} not null,
    last_group ${int} not null,
    archived_at ${int} not null
  ) ${tableEnd}`,
  ...forbidChanges('ledger_archives'),
  ...permitDeletes('transfers', TRANSFER_ARCHIVED),
  ...permitDeletes('ledger_groups', GROUP_ARCHIVED),
  ...permitDeletes('billing_ticks', TICK_ARCHIVED),
  'create index billing_ticks_by_group on billing_ticks (group_id)',
];
