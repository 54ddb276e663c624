/** Which account brought which, and what was put aside for it of the fees that the one it brought paid. */
import type { SqlWords } from '../sql-dialects.ts';

export const referrals = ({ int, tableEnd }: SqlWords): string[] => [
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
