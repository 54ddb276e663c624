/** Places of nodes: what the provider entered, and the evidence for or against it. */
import type { SqlDialect } from '../sql-dialects.ts';

export const places = ({ int, tableEnd, stampOneMore }: SqlDialect): string[] => [
  // Without a foreign key, like the counters of a node: a reference would lock the row of the executor.
  `create table node_places (
    executor_id text primary key,
    entered_json text,
    round_trip_json text,
    evidence_json text not null,
    updated_at ${int} not null
  ) ${tableEnd}`,
  // The columns lat, lon and location_json of the executor contain the place as the market shows it.
  `alter table executors add column location_check text
    check (location_check in ('entered', 'confirmed', 'contradicted'))`,
  ...stampOneMore('executors', 'location_check'),
];
