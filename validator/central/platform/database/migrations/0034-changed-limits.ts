/** Time of the last change of a pod's spending limits. A lowered limit does not apply to usage before this time. */
import type { SqlDialect } from '../sql-dialects.ts';

export const changedLimits = ({ int }: SqlDialect): string[] => [
  `alter table usage_meters add column changed_ms ${int} not null default 0`,
];
