/** The session whose ticket began a session, so that both end together; and an index for the ages of checks. */
import type { SqlDialect } from '../sql-dialects.ts';

export const sessionsAndChecks = (_: SqlDialect): string[] => [
  'alter table sessions add column creator_session_id text',
  'create index sessions_by_creator on sessions (creator_session_id)',
  'create index executors_by_verdict on executors (verdict_at, state)',
];
