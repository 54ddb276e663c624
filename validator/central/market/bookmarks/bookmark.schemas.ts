/** Requests and responses for bookmarks. */
import { z } from 'zod';
import { NaiveTime, optional, Uuid } from '../../platform/wire.ts';
import { ExecutorDetailResponse } from '../executors/executor.schemas.ts';

export const BookmarkParams = z.object({ executor_id: Uuid });

/** Fields have no defaults, so that the idempotency fingerprint covers the body as sent. */
export const BookmarkRequest = z
  .object({
    executor_id: Uuid,
    /** Default: true. False removes the bookmark. */
    bookmarked: optional(z.boolean()),
  })
  .meta({ id: 'BookmarkRequest' });
export type BookmarkRequest = z.output<typeof BookmarkRequest>;

export const BookmarkAnswer = z
  .object({ success: z.literal(true), executor_id: z.uuid(), is_bookmarked: z.boolean() })
  .meta({ id: 'BookmarkAnswer' });
export type BookmarkAnswer = z.output<typeof BookmarkAnswer>;

export const Bookmark = z
  .object({
    id: z.uuid(),
    executor_id: z.uuid(),
    created_at: NaiveTime,
    /** Null after the node was removed from the marketplace. */
    executor: ExecutorDetailResponse.nullable(),
  })
  .meta({ id: 'Bookmark' });
export type BookmarkResponse = z.output<typeof Bookmark>;
