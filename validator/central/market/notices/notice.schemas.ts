/** What the portal takes to announce a notice period (contract 6 and 10). */
import { z } from 'zod';
import { displayText, optional } from '../../platform/wire.ts';

const MAX_TIME_CHARS = 64;
const MAX_REASON = 500;

const Time = z.string().max(MAX_TIME_CHARS);

/** Whether it makes a notice is said by notice.rules.ts: clients take a 422 for a changed interface. */
export const SetNotice = z
  .object({
    starting_at: optional(Time),
    period_in_minute: optional(z.int()),
    permanent_removal: optional(z.boolean()),
    reason: optional(displayText(MAX_REASON)),
    /** The same under the specification's names. */
    start: optional(Time),
    minutes: optional(z.int()),
    permanent: optional(z.boolean()),
  })
  .meta({ id: 'SetNotice' })
  .transform((body) => ({
    startText: body.starting_at ?? body.start,
    minutes: body.period_in_minute ?? body.minutes,
    // False says as much as nothing.
    permanent: body.permanent_removal === true || body.permanent === true,
    reason: body.reason,
  }));
export type SetNotice = z.output<typeof SetNotice>;
