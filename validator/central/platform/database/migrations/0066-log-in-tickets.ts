/** Single-use tickets that begin a session, and the program that began each session. */
import type { SqlDialect } from '../sql-dialects.ts';

export const logInTickets = ({ int, tableEnd }: SqlDialect): string[] => [
  'alter table sessions add column client text',
  `create table log_in_tickets (
    ticket_hash text primary key,
    session_id text not null,
    kind text not null,
    subject_id text not null,
    created_at ${int} not null,
    expires_at ${int} not null
  ) ${tableEnd}`,
  'create index log_in_tickets_by_subject on log_in_tickets (kind, subject_id, created_at)',
  'create index log_in_tickets_by_expiry on log_in_tickets (expires_at)',
];
