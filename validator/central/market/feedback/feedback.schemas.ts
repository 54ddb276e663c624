/** Request and response for feedback on a pod. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { CREATED_AT } from '../../platform/openapi/field-texts.ts';
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
/** Maximum characters of an object key in a request; the keys of this server are shorter. */
const MAX_KEY_CHARS = 200;

export const FeedbackParams = z.object({ pod_id: Uuid });

export const FeedbackRequest = z
  .object(
    described(
      {
        rating: z.int().min(1).max(5),
        category: optional(z.enum(FEEDBACK_CATEGORIES)),
        comment: optional(z.string().trim().max(MAX_COMMENT_CHARS)),
        contact_ok: withDefault(z.boolean(), false),
        attachment_keys: withDefault(
          z.array(z.string().max(MAX_KEY_CHARS)).max(MAX_ATTACHMENTS),
          [],
        ),
      },
      {
        rating: 'Rating from 1 (bad) to 5 (good).',
        category: 'Subject of the feedback; absent for none.',
        comment: 'Comment, up to 4000 characters; absent for none.',
        contact_ok: 'True if the renter accepts a reply.',
        attachment_keys:
          'Values of `object_key` from `POST /users/presigned-url` with the purpose `feedback`, at most 5.',
      },
    ),
  )
  .meta({
    id: 'FeedbackRequest',
    example: { rating: 4, category: 'performance', comment: 'Fast disks.', contact_ok: true },
  });
export type FeedbackRequest = z.output<typeof FeedbackRequest>;

export const FeedbackResponse = z
  .object(
    described(
      {
        id: z.uuid(),
        pod_id: z.uuid(),
        user_id: z.string(),
        rating: z.int(),
        category: z.enum(FEEDBACK_CATEGORIES),
        comment: z.string(),
        contact_ok: z.boolean(),
        created_at: NaiveTime,
      },
      {
        id: 'Id of the feedback.',
        pod_id: 'Id of the pod.',
        user_id: 'Id of the account.',
        rating: 'Rating from 1 (bad) to 5 (good).',
        category: 'Subject of the feedback; `other` if the request has none.',
        comment: 'Comment; may be empty.',
        contact_ok: 'True if the renter accepts a reply.',
        created_at: CREATED_AT,
      },
    ),
  )
  .meta({ id: 'FeedbackResponse' });
export type FeedbackResponse = z.output<typeof FeedbackResponse>;
