/** The rental's request for an encrypted volume. */
import type { SqlDialect } from '../sql-dialects.ts';

export const volumeEncryption = ({ int }: SqlDialect): string[] => [
  `alter table pods add column enable_volume_encryption ${int} not null default 0
    check (enable_volume_encryption in (0, 1))`,
];
