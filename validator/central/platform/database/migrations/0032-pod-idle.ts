/**
 * Idle shutdown of pods: start of the idle time, expected shutdown, and the time until which the pod was measured as
 * idle.
 */
import type { SqlDialect } from '../sql-dialects.ts';

export const podIdle = ({ int }: SqlDialect): string[] => [
  `alter table pods add column idle_from ${int}`,
  `alter table pods add column idle_stop_at ${int}`,
  `alter table pods add column idle_until ${int}`,
];
