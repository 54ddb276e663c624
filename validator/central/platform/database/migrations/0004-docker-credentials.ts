/** Registry logins, and the columns with which templates and pods refer to them. */
import type { SqlDialect } from '../sql-dialects.ts';

export const dockerCredentials = ({ int, tableEnd }: SqlDialect): string[] => [
  `create table docker_credentials (
    id text primary key,
    account_id text not null references accounts (id),
    name text not null,
    docker_username text not null,
    password_sealed text not null,
    created_at ${int} not null,
    updated_at ${int} not null
  ) ${tableEnd}`,
  'create index docker_credentials_by_account on docker_credentials (account_id)',
  'alter table templates add column docker_credential_id text',
  'alter table pods add column docker_credential_id text',
];
