/** Every secret of a webhook that was replaced in the last day, where there was room for one. */
import type { SqlWords } from '../sql-dialects.ts';

export const replacedSecrets = (_: SqlWords): string[] => [
  "alter table webhooks add column replaced_json text not null default '[]'",
  // Sealed text is base64url, which needs no escape.
  `update webhooks
    set replaced_json =
      '[{"sealed":"' || previous_sealed || '","untilMs":' || cast(previous_until as text) || '}]'
    where previous_sealed is not null and previous_until is not null`,
  'alter table webhooks drop column previous_sealed',
  'alter table webhooks drop column previous_until',
];
