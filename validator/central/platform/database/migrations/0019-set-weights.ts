/** The last weights of each validator. */
import type { SqlDialect } from '../sql-dialects.ts';

export const setWeights = ({ int, tableEnd }: SqlDialect): string[] => [
  `create table set_weights (
    validator_hotkey text primary key,
    payload_json text not null,
    updated_at_micros ${int} not null,
    received_at ${int} not null
  ) ${tableEnd}`,
  'create index set_weights_by_time on set_weights (updated_at_micros)',
];
