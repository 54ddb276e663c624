/** What renters say of their pods, during their life and after it (contract 5.2). */
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
import { clearFeedback, countFeedback, insertFeedback } from './feedback.store.ts';

/** More of them about one pod tell nothing new. */
const MAX_PER_POD = 20;

export type FeedbackDeps = {
  clock: Clock;
  random: Random;
  /** Whether the arrival of an upload is told to us: where objects lie here. */
  knowsArrivals: boolean;
};

/** Stores feedback on the caller's pod, ended or not. Throws `pod_not_found`, or `bad_request` for uploads that are not the caller's. */
export async function giveFeedback(
  tx: Db,
  deps: FeedbackDeps,
  { identity, podId, request }: { identity: UserIdentity; podId: string; request: FeedbackRequest },
): Promise<FeedbackResponse> {
  const { accountId } = identity;
  await lockRow(tx, 'pods', podId);
  await lockAccount(tx, identity);
  await requireAnyOwnPod(tx, accountId, podId);
  if ((await countFeedback(tx, podId)) >= MAX_PER_POD) {
    throw new ApiError('bad_request', `The pod has ${MAX_PER_POD} feedbacks already`);
  }
  const keys = [...new Set(request.attachment_keys)];
  const wish = { accountId, purpose: 'feedback', keys, arrived: deps.knowsArrivals } as const;
  if (!(await hasUploads(tx, wish))) {
    throw new ApiError('bad_request', 'attachment_keys names an upload that is not there', {
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
  return { ...row, user_id: accountId, contact_ok, created_at: naiveUtc(nowMs) };
}

/** Takes away what an account wrote; its ratings stay. */
export function forgetFeedback(tx: Db, accountId: string): Promise<void> {
  return clearFeedback(tx, accountId);
}
