/** Accounts of validators. */
import type { SqlDialect } from '../sql-dialects.ts';

export const validatorAccounts = ({ int, tableEnd }: SqlDialect): string[] => [
  `create table validator_accounts (
    hotkey text primary key,
    account_id text not null unique references accounts (id),
    proven_at ${int} not null
  ) ${tableEnd}`,
];
