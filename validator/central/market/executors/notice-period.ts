/** Notice periods of nodes: announced maintenance or removal. Pure. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import type { Executor } from '../../platform/database/tables.ts';

export const NoticePeriod = z
  .object(
    described(
      {
        starting_at: z.string(),
        period_in_minute: z.int().nullable(),
        permanent_removal: z.boolean(),
        reason: z.string().nullable(),
      },
      {
        starting_at: 'Start, as the provider sent it, with its offset.',
        period_in_minute: 'Length of the maintenance in minutes; null for a removal.',
        permanent_removal: 'True if the node leaves the marketplace for good.',
        reason: 'Reason of the provider; null for none.',
      },
    ),
  )
  .meta({ id: 'NoticePeriod', description: 'Announced maintenance or removal of a node.' });
export type NoticePeriod = z.output<typeof NoticePeriod>;

/** The node's current or future notice; null if there is none. */
export function noticeOf({ notice_json }: Pick<Executor, 'notice_json'>): NoticePeriod | null {
  return notice_json === null ? null : (JSON.parse(notice_json) as NoticePeriod);
}

/** Returns true if the announced time of a removal has passed. */
export function isLeaving(executor: Pick<Executor, 'notice_json'>, nowMs: number): boolean {
  const notice = noticeOf(executor);
  if (notice?.permanent_removal !== true) return false;
  return (parseIsoTime(notice.starting_at) ?? 0) <= nowMs;
}

/** Warning for renters; null without a notice. */
export function noticeWarning(executor: Pick<Executor, 'notice_json'>): string | null {
  const notice = noticeOf(executor);
  if (notice === null) return null;
  const { starting_at: at, period_in_minute: minutes } = notice;
  return notice.permanent_removal
    ? `The provider removes this node at ${at}: pods on this node end at that time.`
    : `The provider has announced ${minutes} minutes of maintenance of this node from ${at}.`;
}
