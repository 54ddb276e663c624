/** Whether a rental asked for an encrypted volume. */
import type { SqlWords } from '../sql-dialects.ts';

export const volumeEncryption = ({ int }: SqlWords): string[] => [
  `alter table pods add column enable_volume_encryption ${int} not null default 0
    check (enable_volume_encryption in (0, 1))`,
];
