/** GET /pods/history (contract 5.2). */
import { z } from 'zod';
import { NaiveTime, queryNumber, withDefault } from '../../platform/wire.ts';
import { PodListItemResponse } from './pod.schemas.ts';

const MAX_PAGE = 1_000_000;
const MAX_LIMIT = 100;
const DEFAULT_LIMIT = 20;

export const PodHistoryQuery = z.object({
  page: withDefault(queryNumber(z.int().min(1).max(MAX_PAGE)), 1),
  limit: withDefault(queryNumber(z.int().min(1).max(MAX_LIMIT)), DEFAULT_LIMIT),
});
export type PodHistoryQuery = z.output<typeof PodHistoryQuery>;

/** What is left of a deleted pod: its row as it last was, with the status DELETED. */
const PodTombstone = z
  .object({ ...PodListItemResponse.shape, deleted_at: NaiveTime })
  .meta({ id: 'PodTombstone' });

export const PodHistoryResponse = z
  .object({
    items: z.array(PodTombstone),
    /** On all pages together. */
    total: z.int(),
    page: z.int(),
    limit: z.int(),
    has_next: z.boolean(),
  })
  .meta({ id: 'PodHistoryResponse' });
export type PodHistoryResponse = z.output<typeof PodHistoryResponse>;
