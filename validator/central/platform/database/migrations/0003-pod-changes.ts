/** Changing a pod in place, and the limits that its renter sets later. */
import type { SqlWords } from '../sql-dialects.ts';

export const podChanges = ({ int }: SqlWords): string[] => [
  'alter table pods add column previous_json text',
  `alter table pods add column template_tried_at ${int}`,
  `alter table pods add column max_spend_uusd ${int}`,
  `alter table pods add column idle_shutdown_minutes ${int}`,
];
