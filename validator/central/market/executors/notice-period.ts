/** What a provider has announced of a node, as everybody sees it (contract 6). Pure. */
import { z } from 'zod';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import type { Executor } from '../../platform/database/tables.ts';

export const NoticePeriod = z
  .object({
    /** As the provider wrote it, with its offset. */
    starting_at: z.string(),
    /** Of a maintenance; null where the node goes for good. */
    period_in_minute: z.int().nullable(),
    permanent_removal: z.boolean(),
    reason: z.string().nullable(),
  })
  .meta({ id: 'NoticePeriod' });
export type NoticePeriod = z.output<typeof NoticePeriod>;

/** The node's notice that is to come or under way; null: none. */
export function noticeOf({ notice_json }: Pick<Executor, 'notice_json'>): NoticePeriod | null {
  return notice_json === null ? null : (JSON.parse(notice_json) as NoticePeriod);
}

/** Whether it should have gone for good by now. */
export function isLeaving(executor: Pick<Executor, 'notice_json'>, nowMs: number): boolean {
  const notice = noticeOf(executor);
  if (notice?.permanent_removal !== true) return false;
  return (parseIsoTime(notice.starting_at) ?? 0) <= nowMs;
}

/** What renters are told of it before they rent. */
export function noticeWarning(executor: Pick<Executor, 'notice_json'>): string | null {
  const notice = noticeOf(executor);
  if (notice === null) return null;
  const { starting_at: at, period_in_minute: minutes } = notice;
  return notice.permanent_removal
    ? `The provider takes this node away at ${at}: pods on it end then.`
    : `The provider has announced ${minutes} minutes of maintenance of this node from ${at} on.`;
}
