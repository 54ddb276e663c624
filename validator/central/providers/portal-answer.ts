/** How the portal wraps what it answers (contract 10). */
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import type { PageQuery } from './provider.schemas.ts';

export type PortalAnswers = ReturnType<typeof createPortalAnswers>;

export function createPortalAnswers({ clock }: { clock: Clock }) {
  const one = <Data>(data: Data) => ({
    success: true as const,
    data,
    timestamp: naiveUtc(clock.now()),
  });
  return {
    one,
    /** A page of a list. */
    page<Item>({ items, total }: { items: Item[]; total: number }, { page, limit }: PageQuery) {
      const pagination = { page, limit, total, total_pages: Math.ceil(total / limit) };
      return { ...one(items), total, page, limit, pagination };
    },
  };
}

/** The page asked for of a list that is short enough to be at hand. Pure. */
export function pageOf<Item>(all: readonly Item[], { page, limit }: PageQuery) {
  return { items: all.slice((page - 1) * limit, page * limit), total: all.length };
}
