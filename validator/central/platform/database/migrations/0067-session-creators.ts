/** The session whose ticket began a session, so that both end together. */
import type { SqlDialect } from '../sql-dialects.ts';

export const sessionCreators = (_: SqlDialect): string[] => [
  'alter table sessions add column creator_session_id text',
  'create index sessions_by_creator on sessions (creator_session_id)',
];
