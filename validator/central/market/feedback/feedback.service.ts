/** Records feedback of renters on their pods, whether or not the pods have ended. */
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { lockAccount } from '../../accounts/auth/account-access.ts';
import { hasUploads } from '../../delivery/uploads/object.service.ts';
import type { Db } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import { requireAnyOwnPod } from '../pods/pod-access.ts';
import type { FeedbackRequest, FeedbackResponse } from './feedback.schemas.ts';
import { countFeedback, insertFeedback } from './feedback.store.ts';

export { clearFeedbackOf } from './feedback.store.ts';

const MAX_PER_POD = 20;

export type FeedbackDeps = {
  clock: Clock;
  random: Random;
  /** True if this server stores the uploads and therefore records their arrival. */
  recordsUploads: boolean;
};

/**
 * Stores feedback on the caller's pod, whether or not the pod has ended. Throws `pod_not_found`, and `bad_request` for
 * uploads of other accounts.
 */
export async function recordFeedback(
  tx: Db,
  deps: FeedbackDeps,
  { identity, podId, request }: { identity: UserIdentity; podId: string; request: FeedbackRequest },
): Promise<FeedbackResponse> {
  const { accountId } = identity;
  await lockRow(tx, 'pods', podId);
  await lockAccount(tx, identity);
  await requireAnyOwnPod(tx, accountId, podId);
  if ((await countFeedback(tx, podId)) >= MAX_PER_POD) {
    throw new ApiError('bad_request', `The pod already has ${MAX_PER_POD} feedback entries`);
  }
  const keys = [...new Set(request.attachment_keys)];
  const uploads = { accountId, purpose: 'feedback', keys, arrived: deps.recordsUploads } as const;
  if (!(await hasUploads(tx, uploads))) {
    throw new ApiError('bad_request', 'attachment_keys contains an upload that does not exist', {
      hint: 'Upload with POST /users/presigned-url and the purpose feedback, then send its object_key.',
    });
  }
  const { rating, category = null, comment, contact_ok } = request;
  const row = {
    id: deps.random.uuid(),
    pod_id: podId,
    rating,
    category,
    comment: comment === undefined || comment === '' ? null : comment,
  };
  const nowMs = deps.clock.now();
  await insertFeedback(tx, {
    ...row,
    account_id: accountId,
    contact_ok: contact_ok ? 1 : 0,
    attachment_keys_json: JSON.stringify(keys),
    created_at: nowMs,
  });
  const shown = { ...row, category: category ?? 'other', comment: row.comment ?? '' } as const;
  return { ...shown, user_id: accountId, contact_ok, created_at: naiveUtc(nowMs) };
}
