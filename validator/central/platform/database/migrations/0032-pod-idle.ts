/** Pods that are stopped when nobody uses them: since when that may count, when they stop as things stand, up to when that is confirmed. */
import type { SqlWords } from '../sql-dialects.ts';

export const podIdle = ({ int }: SqlWords): string[] => [
  `alter table pods add column idle_from ${int}`,
  `alter table pods add column idle_stop_at ${int}`,
  `alter table pods add column idle_until ${int}`,
];
