/** Access of accounts to pods. A pod of another account and a missing pod cause the same error. */

import { naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import { podStateOf } from './pod.state.ts';
import { findPod, listLiveOn } from './pod.store.ts';

/** Time for which a failed creation stays in the list of pods. */
export const FAILED_LISTED_MS = 180_000;

/**
 * Finds the account's pod and, in a transaction, locks it. Throws 404 `pod_not_found`; for a pod that has ended, the
 * error contains the details that are still stored.
 */
export async function requireOwnPod(
  db: Db,
  accountId: string,
  id: string,
  nowMs: number,
): Promise<Pod> {
  if (db.isTransaction) await lockRow(db, 'pods', id);
  const pod = await requireAnyOwnPod(db, accountId, id);
  const goneAt = goneAtOf(pod, nowMs);
  if (goneAt === null) return pod;
  throw podNotFound(`Pod ${id} was deleted`, {
    deleted_at: naiveUtc(goneAt),
    reason_code: pod.reason_code,
  });
}

/**
 * The time from which the pod counts as deleted; null while it is listed. A failed creation is listed for
 * FAILED_LISTED_MS.
 */
export function goneAtOf(pod: Pod, nowMs: number): number | null {
  const goneAt = pod.ended_at ?? failureListedUntil(pod);
  return goneAt === null || goneAt > nowMs ? null : goneAt;
}

function failureListedUntil(pod: Pod): number | null {
  const failedAt = pod.delete_requested_at;
  const failed = podStateOf(pod.state) === 'creation_failed' && failedAt !== null;
  return failed ? failedAt + FAILED_LISTED_MS : null;
}

/**
 * Returns the id of a pod that a client names by the pod's id or, as older clients do, by its node's id. A node's id
 * means the account's only live pod on the node; throws `bad_request` if there are several. Returns other ids
 * unchanged.
 */
export async function podIdNamedBy(db: Db, accountId: string, id: string): Promise<string> {
  if ((await findPod(db, id)) !== undefined) return id;
  const [only, ...others] = await listLiveOn(db, accountId, id);
  if (only === undefined) return id;
  if (others.length === 0) return only.id;
  throw new ApiError('bad_request', `You have ${others.length + 1} pods on this node`, {
    hint: 'Send the id of the pod.',
  });
}

/** Finds a pod of any account, whether or not it has ended. */
export function findAnyPod(db: Db, id: string): Promise<Pod | undefined> {
  return findPod(db, id);
}

/** Finds the account's pod, whether or not it has ended. Throws `pod_not_found`. */
export async function requireAnyOwnPod(db: Db, accountId: string, id: string): Promise<Pod> {
  const pod = await findPod(db, id);
  if (pod?.account_id !== accountId) throw podNotFound(`There is no pod ${id}`);
  return pod;
}

export function podNotFound(message: string, details?: Record<string, unknown>): ApiError {
  return new ApiError('pod_not_found', message, details === undefined ? {} : { details });
}
