/** Places of nodes: the place that the provider entered, and the evidence for or against this place. */
import type { SqlDialect } from '../sql-dialects.ts';

export const places = ({ int, tableEnd, stampOneMore }: SqlDialect): string[] => [
  // No foreign key to the executor, because a reference would lock the row of the executor.
  `create table node_places (
    executor_id text primary key,
    entered_json text,
    round_trip_json text,
    evidence_json text not null,
    updated_at ${int} not null
  ) ${tableEnd}`,
  // The columns lat, lon and location_json of the executor contain the place that the market shows.
  `alter table executors add column location_check text
    check (location_check in ('entered', 'confirmed', 'contradicted'))`,
  ...stampOneMore('executors', 'location_check'),
];
