/** Secrets of accounts, and the copies that pods receive when they are rented. Values are encrypted. */
import type { SqlDialect } from '../sql-dialects.ts';

export const secrets = ({ int, tableEnd }: SqlDialect): string[] => [
  `create table account_secrets (
    id text primary key,
    account_id text not null references accounts (id),
    name text not null,
    value_sealed text not null,
    created_at ${int} not null,
    updated_at ${int} not null,
    unique (account_id, name)
  ) ${tableEnd}`,
  `create table pod_secrets (
    pod_id text not null references pods (id),
    name text not null,
    value_sealed text not null,
    primary key (pod_id, name)
  ) ${tableEnd}`,
];
