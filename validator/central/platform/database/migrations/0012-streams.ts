/** The order of events in their account's feed, and tickets for streams that any process can redeem. */
import type { SqlWords } from '../sql-dialects.ts';

export const streams = ({ int, tableEnd }: SqlWords): string[] => [
  `alter table events add column feed_no ${int}`,
  // Every event is in one of them: found by its place, or waiting for one.
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
