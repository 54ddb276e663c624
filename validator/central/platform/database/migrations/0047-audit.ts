/** Audit entries: the actions of operators and their reasons. Rows never change. */
import type { SqlDialect } from '../sql-dialects.ts';

export const audit = ({ int, serial, tableEnd, forbidChanges }: SqlDialect): string[] => [
  `create table audit_entries (
    seq ${serial},
    operator text not null,
    action text not null,
    subject_type text not null,
    subject_id text not null,
    reason text not null check (reason <> ''),
    at_ms ${int} not null
  ) ${tableEnd}`,
  'create index audit_entries_of on audit_entries (subject_type, subject_id, seq)',
  ...forbidChanges('audit_entries'),
];
