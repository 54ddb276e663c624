/** Which pods an account may see: a foreign one is as absent as one that is not there (contract 2.3). */

import { naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Db, Pod } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import { podStateOf } from './pod.state.ts';
import { findPod } from './pod.store.ts';
import { FAILED_LISTED_MS } from './pod-dues.ts';

/** The account's pod, in a transaction held until its end; 404 with what is left of it once it has ended or its failure was shown long enough. */
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

/** When the pod ended, or its failure was shown long enough; null while there still is a pod to see. */
export function goneAtOf(pod: Pod, nowMs: number): number | null {
  const goneAt = pod.ended_at ?? failureShownUntil(pod);
  return goneAt === null || goneAt > nowMs ? null : goneAt;
}

function failureShownUntil(pod: Pod): number | null {
  const failedAt = pod.delete_requested_at;
  const failed = podStateOf(pod.state) === 'creation_failed' && failedAt !== null;
  return failed ? failedAt + FAILED_LISTED_MS : null;
}

/** Whosesoever pod, ended or not. */
export function findAnyPod(db: Db, id: string): Promise<Pod | undefined> {
  return findPod(db, id);
}

/** The account's pod, ended or not. */
export async function requireAnyOwnPod(db: Db, accountId: string, id: string): Promise<Pod> {
  const pod = await findPod(db, id);
  if (pod?.account_id !== accountId) throw podNotFound(`There is no pod ${id}`);
  return pod;
}

/** The refusal that foreign and absent pods share. */
export function podNotFound(message: string, details?: Record<string, unknown>): ApiError {
  return new ApiError('pod_not_found', message, details === undefined ? {} : { details });
}
