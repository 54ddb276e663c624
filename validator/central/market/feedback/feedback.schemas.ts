/** Request and response for feedback on a pod. */
import { z } from 'zod';
import { NaiveTime, optional, Uuid, withDefault } from '../../platform/wire.ts';

export const FEEDBACK_CATEGORIES = [
  'performance',
  'network',
  'storage',
  'setup',
  'billing',
  'other',
] as const;

const MAX_COMMENT_CHARS = 4_000;
export const MAX_ATTACHMENTS = 5;
/** Longer than any object key of this server. */
const MAX_KEY_CHARS = 200;

export const FeedbackParams = z.object({ pod_id: Uuid });

export const FeedbackRequest = z
  .object({
    rating: z.int().min(1).max(5),
    category: optional(z.enum(FEEDBACK_CATEGORIES)),
    comment: optional(z.string().trim().max(MAX_COMMENT_CHARS)),
    /** True if the renter accepts a reply. */
    contact_ok: withDefault(z.boolean(), false),
    /** Values of `object_key` from POST /users/presigned-url with the purpose feedback. */
    attachment_keys: withDefault(z.array(z.string().max(MAX_KEY_CHARS)).max(MAX_ATTACHMENTS), []),
  })
  .meta({ id: 'FeedbackRequest' });
export type FeedbackRequest = z.output<typeof FeedbackRequest>;

export const FeedbackResponse = z
  .object({
    id: z.uuid(),
    pod_id: z.uuid(),
    user_id: z.string(),
    rating: z.int(),
    category: z.enum(FEEDBACK_CATEGORIES).nullable(),
    comment: z.string().nullable(),
    contact_ok: z.boolean(),
    created_at: NaiveTime,
  })
  .meta({ id: 'FeedbackResponse' });
export type FeedbackResponse = z.output<typeof FeedbackResponse>;
