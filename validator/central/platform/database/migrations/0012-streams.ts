/** Order of events in the feed of their account, and stream tickets that any process can redeem. */
import type { SqlDialect } from '../sql-dialects.ts';

export const streams = ({ int, tableEnd }: SqlDialect): string[] => [
  `alter table events add column feed_no ${int}`,
  // Every event is in one of the two indexes: with a position in the feed, or without one.
  'create unique index events_in_feed on events (account_id, feed_no) where feed_no is not null',
  'create index events_to_feed on events (account_id, seq) where feed_no is null',
  `create table stream_tickets (
    ticket_hash text primary key,
    account_id text not null references accounts (id),
    pod_id text,
    credential_sealed text not null,
    expires_at ${int} not null
  ) ${tableEnd}`,
  'create index stream_tickets_by_account on stream_tickets (account_id, expires_at)',
  'create index stream_tickets_by_expiry on stream_tickets (expires_at)',
];
