/** The weights that each validator set last. */
import type { SqlWords } from '../sql-dialects.ts';

export const setWeights = ({ int, tableEnd }: SqlWords): string[] => [
  `create table set_weights (
    validator_hotkey text primary key,
    payload_json text not null,
    updated_at_micros ${int} not null,
    received_at ${int} not null
  ) ${tableEnd}`,
  'create index set_weights_by_time on set_weights (updated_at_micros)',
];
