/** Deposits of nodes and providers. The column `collateral_deposited` of an executor is derived from them. */
import type { SqlDialect } from '../sql-dialects.ts';

export const collateral = ({ int, tableEnd }: SqlDialect): string[] => [
  `create table collateral_deposits (
    subject text not null,
    source text not null check (source in ('feed', 'operator')),
    note text,
    created_at ${int} not null,
    primary key (subject, source)
  ) ${tableEnd}`,
];
