/** Requests and responses for bookmarks. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { EXAMPLE_IDS } from '../../platform/openapi/example-ids.ts';
import { CREATED_AT, SUCCESS } from '../../platform/openapi/field-texts.ts';
import { NaiveTime, optional, Uuid } from '../../platform/wire.ts';
import { ExecutorDetailResponse } from '../executors/executor.schemas.ts';

export const BookmarkParams = z.object({ executor_id: Uuid });

/** Fields have no defaults, so that the idempotency fingerprint covers the body as sent. */
export const BookmarkRequest = z
  .object(
    described(
      { executor_id: Uuid, bookmarked: optional(z.boolean()) },
      {
        executor_id: 'Id of the node.',
        bookmarked: 'False removes the bookmark. Absent means true.',
      },
    ),
  )
  .meta({ id: 'BookmarkRequest', example: { executor_id: EXAMPLE_IDS.node } });
export type BookmarkRequest = z.output<typeof BookmarkRequest>;

export const BookmarkAnswer = z
  .object(
    described(
      { success: z.literal(true), executor_id: z.uuid(), is_bookmarked: z.boolean() },
      {
        success: SUCCESS,
        executor_id: 'Id of the node.',
        is_bookmarked: 'True if the node is now bookmarked.',
      },
    ),
  )
  .meta({ id: 'BookmarkAnswer' });
export type BookmarkAnswer = z.output<typeof BookmarkAnswer>;

export const Bookmark = z
  .object(
    described(
      {
        id: z.uuid(),
        executor_id: z.uuid(),
        created_at: NaiveTime,
        executor: ExecutorDetailResponse.nullable(),
      },
      {
        id: 'Id of the bookmark.',
        executor_id: 'Id of the node.',
        created_at: CREATED_AT,
        executor:
          'The node; null before its first check, and after it was removed from the marketplace.',
      },
    ),
  )
  .meta({ id: 'Bookmark' });
export type BookmarkResponse = z.output<typeof Bookmark>;
