/** How many streams of one kind there may be: per pod where they have one, per account, and in all. */

import { ApiError } from '#shared/runtime/errors.ts';
import { createPerOwnerLimit } from '#shared/runtime/semaphore.ts';

export type StreamLimits = { perPod?: number; perAccount: number; total: number };
export type StreamSeats = ReturnType<typeof createStreamSeats>;

/** Readers of logs: each costs a page of 64 KiB and its socket's buffers when it stalls. */
export const LOG_LIMITS: StreamLimits = { perPod: 256, perAccount: 512, total: 2_000 };
/** Terminals: each holds two sockets here, two at the gateway, and a process in the pod. */
export const TERMINAL_LIMITS: StreamLimits = { perPod: 10, perAccount: 50, total: 500 };
/** Followers of an account's events: each costs a page of them and its socket's buffers when it stalls. */
export const EVENT_LIMITS: StreamLimits = { perAccount: 20, total: 2_000 };
const RETRY_AFTER_SECONDS = '5';

export function createStreamSeats({ perPod = 0, perAccount, total }: StreamLimits) {
  const pods = createPerOwnerLimit(perPod, total);
  const accounts = createPerOwnerLimit(perAccount, total);
  return {
    /** The way to give the place back, once. Throws 429. */
    take(podId: string | null, accountId: string): () => void {
      if (podId !== null && !pods.tryAcquire(podId)) throw tooMany('on this pod', perPod);
      const leavePod = () => podId !== null && pods.release(podId);
      if (!accounts.tryAcquire(accountId)) {
        leavePod();
        throw tooMany('of this account', perAccount);
      }
      let held = true;
      return () => {
        if (!held) return;
        held = false;
        leavePod();
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
