/** Changes of pods in place, and limits that the renter sets after the rental. */
import type { SqlDialect } from '../sql-dialects.ts';

export const podChanges = ({ int }: SqlDialect): string[] => [
  'alter table pods add column previous_json text',
  `alter table pods add column template_tried_at ${int}`,
  `alter table pods add column max_spend_uusd ${int}`,
  `alter table pods add column idle_shutdown_minutes ${int}`,
];
