/** Accounts that have the operator's role. */
import type { SqlDialect } from '../sql-dialects.ts';

export const operators = ({ int }: SqlDialect): string[] => [
  `alter table accounts add column operator_since ${int}`,
];
