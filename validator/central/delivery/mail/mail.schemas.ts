/** The outbox of a marketplace without SMTP, as JSON. An addition of ours to the interface. */
import { z } from 'zod';
import { NaiveTime } from '../../platform/wire.ts';

export const OutboxMail = z
  .object({
    id: z.uuid(),
    to: z.string(),
    kind: z.string(),
    created_at: NaiveTime,
    subject: z.string(),
    text: z.string(),
    html: z.string(),
  })
  .meta({ id: 'OutboxMail' });
export type OutboxMail = z.output<typeof OutboxMail>;
