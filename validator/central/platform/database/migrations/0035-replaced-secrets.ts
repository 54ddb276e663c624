/** All secrets of a webhook that were replaced within the last day. Before, only one was stored. */
import type { SqlDialect } from '../sql-dialects.ts';

export const replacedSecrets = (_: SqlDialect): string[] => [
  "alter table webhooks add column replaced_json text not null default '[]'",
  // Sealed text is base64url and needs no escaping.
  `update webhooks
    set replaced_json =
      '[{"sealed":"' || previous_sealed || '","untilMs":' || cast(previous_until as text) || '}]'
    where previous_sealed is not null and previous_until is not null`,
  'alter table webhooks drop column previous_sealed',
  'alter table webhooks drop column previous_until',
];
