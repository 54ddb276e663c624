/** Limits of concurrent streams of one kind: per pod, per account and in total. */

import { ApiError } from '#shared/runtime/errors.ts';
import { createPerOwnerLimit } from '#shared/runtime/semaphore.ts';

export type StreamLimits = { perPod?: number; perAccount: number; total: number };

/** Limits of log streams. A stalled reader holds a page of 64 KiB (few have a larger one) and its socket's buffers. */
export const LOG_LIMITS: StreamLimits = { perPod: 256, perAccount: 512, total: 2_000 };
/**
 * Limits of terminals. Each terminal holds two sockets in this process, two at the gateway, and a process in the pod.
 */
export const TERMINAL_LIMITS: StreamLimits = { perPod: 10, perAccount: 50, total: 500 };
/** Limits of event streams. A stalled reader holds a page of events and its socket's buffers. */
export const EVENT_LIMITS: StreamLimits = { perAccount: 20, total: 2_000 };
const RETRY_AFTER_SECONDS = '5';

export function createStreamLimit({ perPod = 0, perAccount, total }: StreamLimits) {
  const pods = createPerOwnerLimit(perPod, total);
  const accounts = createPerOwnerLimit(perAccount, total);
  return {
    /** Returns the function that releases the stream, which may be called more than once. Throws 429. */
    acquire(podId: string | null, accountId: string): () => void {
      if (podId !== null && !pods.tryAcquire(podId)) throw tooMany('on this pod', perPod);
      const releasePod = () => podId !== null && pods.release(podId);
      if (!accounts.tryAcquire(accountId)) {
        releasePod();
        throw tooMany('of this account', perAccount);
      }
      let isHeld = true;
      return () => {
        if (!isHeld) return;
        isHeld = false;
        releasePod();
        accounts.release(accountId);
      };
    },
  };
}

function tooMany(where: string, limit: number): ApiError {
  return new ApiError('rate_limited', `There are too many streams ${where} (at most ${limit})`, {
    headers: { 'Retry-After': RETRY_AFTER_SECONDS },
    hint: 'End another stream, or retry later.',
  });
}
