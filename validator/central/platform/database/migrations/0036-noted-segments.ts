/**
 * Time at which the start of a segment was recorded, which may be long after the start. Time before the record does not
 * count towards a grace period.
 */
import type { SqlDialect } from '../sql-dialects.ts';

export const notedSegments = ({ int }: SqlDialect): string[] => [
  `alter table usage_segments add column noted_ms ${int}`,
];
