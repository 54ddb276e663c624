/** Referrals: the referrer of each account, and the part of the account's fees that is credited to the referrer. */
import type { SqlDialect } from '../sql-dialects.ts';

export const referrals = ({ int, tableEnd }: SqlDialect): string[] => [
  `create table referrals (
    account_id text primary key references accounts (id),
    referrer_id text not null references accounts (id),
    paid_uusd ${int} not null check (paid_uusd >= 0),
    accrued_uusd ${int} not null check (accrued_uusd >= 0),
    seq ${int} not null,
    created_at ${int} not null,
    check (account_id <> referrer_id)
  ) ${tableEnd}`,
  'create index referrals_of on referrals (referrer_id)',
];
