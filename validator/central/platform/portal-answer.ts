/** Responses of the provider portal: one object, or one page of a list, with the present time. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { LIMIT, PAGE, SUCCESS, TOTAL } from './openapi/field-texts.ts';
import { queryNumber } from './wire.ts';

const MAX_PAGE = 1_000_000;
export const MAX_PORTAL_LIMIT = 1_000;
const DEFAULT_LIMIT = 20;

/** Query parameters that select a page of a list. */
export const PageQuery = z
  .object(
    described(
      {
        page: queryNumber(z.int().min(1).max(MAX_PAGE).default(1)),
        limit: queryNumber(z.int().min(1).max(MAX_PORTAL_LIMIT).default(DEFAULT_LIMIT)),
      },
      { page: PAGE, limit: 'Maximum number of entries per page, 1 to 1000.' },
    ),
  )
  .meta({ example: { page: 1, limit: 20 } });
export type PageQuery = z.output<typeof PageQuery>;

const ANSWERED_AT = 'Time of the response (UTC).';

/** Schema `{success, data, timestamp}` around one object. */
export function portalAnswer<Data extends z.ZodType>(data: Data) {
  return z.object(
    described(
      { success: z.literal(true), data, timestamp: z.string() },
      { success: SUCCESS, data: 'The answer.', timestamp: ANSWERED_AT },
    ),
  );
}

/** Schema of one page of a list. */
export function portalList<Item extends z.ZodType>(item: Item) {
  return z.object(
    described(
      {
        success: z.literal(true),
        data: z.array(item),
        total: z.int(),
        page: z.int(),
        limit: z.int(),
        pagination: z.object(
          described(
            {
              page: z.int(),
              limit: z.int(),
              total: z.int(),
              total_pages: z.int(),
            },
            { page: PAGE, limit: LIMIT, total: TOTAL, total_pages: 'Number of pages.' },
          ),
        ),
        timestamp: z.string(),
      },
      {
        success: SUCCESS,
        data: 'Entries of this page.',
        total: TOTAL,
        page: PAGE,
        limit: LIMIT,
        pagination: 'The page in the form that some clients read.',
        timestamp: ANSWERED_AT,
      },
    ),
  );
}

export type PortalAnswers = ReturnType<typeof createPortalAnswers>;

export function createPortalAnswers({ clock }: { clock: Clock }) {
  const one = <Data>(data: Data) => ({
    success: true as const,
    data,
    timestamp: naiveUtc(clock.now()),
  });
  return {
    one,
    page<Item>({ items, total }: { items: Item[]; total: number }, { page, limit }: PageQuery) {
      const pagination = { page, limit, total, total_pages: Math.ceil(total / limit) };
      return { ...one(items), total, page, limit, pagination };
    },
  };
}

/** Returns one page of a list in memory. */
export function pageOf<Item>(all: readonly Item[], { page, limit }: PageQuery) {
  return { items: all.slice((page - 1) * limit, page * limit), total: all.length };
}
