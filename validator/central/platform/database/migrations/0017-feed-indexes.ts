/** Indexes for feeds of one pod, and for feeds that start at a time. */
export const feedIndexes = (): string[] => [
  'create index events_of_pod_in_feed on events (pod_id, feed_no) where feed_no is not null',
  `create index events_in_time on events (account_id, created_at, feed_no)
    where feed_no is not null`,
];
