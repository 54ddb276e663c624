/** Since when what bounds a pod's time by money is what it is: a lowered limit ends nothing that was used before. */
import type { SqlWords } from '../sql-dialects.ts';

export const changedLimits = ({ int }: SqlWords): string[] => [
  `alter table usage_meters add column changed_ms ${int} not null default 0`,
];
