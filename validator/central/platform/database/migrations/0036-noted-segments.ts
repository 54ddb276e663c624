/** When a segment's beginning was noted, which may be long after it: a stop that was noted late gave its pod no time to stand still. */
import type { SqlWords } from '../sql-dialects.ts';

export const notedSegments = ({ int }: SqlWords): string[] => [
  `alter table usage_segments add column noted_ms ${int}`,
];
