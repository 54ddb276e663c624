/** Progress of the survey, which compares the pods of nodes with the database, shared by all processes. */
import type { SqlDialect } from '../sql-dialects.ts';

export const nodeSurvey = ({ int, tableEnd }: SqlDialect): string[] => [
  `create table node_survey (
    id ${int} primary key check (id = 1),
    after_id text not null,
    due_at ${int} not null
  ) ${tableEnd}`,
];
