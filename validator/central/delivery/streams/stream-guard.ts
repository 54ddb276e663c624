/** Whether a stream may go on: pods are deleted and credentials revoked meanwhile. */

import type { Clock } from '#shared/runtime/clock.ts';
import { findAnyPod } from '../../market/pods/pod-access.ts';
import type { Database } from '../../platform/database/tables.ts';
import { framesOrIdle, IDLE } from './idle-frames.ts';

/** How often pods are looked at. */
export const CHECK_INTERVAL_MS = 5_000;

export type Guarded = {
  /** Null: of the account alone. */
  podId: string | null;
  /** Aborts when the credential that opened the stream does not stand any more. */
  revoked: AbortSignal;
};

export type StreamGuard = ReturnType<typeof createStreamGuard>;

export function createStreamGuard({ db, stopping }: { db: Database; stopping: AbortSignal }) {
  async function isGone(podId: string): Promise<boolean> {
    const pod = await findAnyPod(db, podId);
    return pod === undefined || pod.delete_requested_at !== null || pod.ended_at !== null;
  }

  return {
    /** Why the stream is over; null while it is not. */
    async endReason({ podId, revoked }: Guarded): Promise<string | null> {
      if (stopping.aborted) return 'server_shutdown';
      if (revoked.aborted) return 'credential_revoked';
      return podId !== null && (await isGone(podId)) ? 'pod_deleted' : null;
    },
  };
}

// MERGED validator/central/delivery/streams/stream-guard.ts: A stream that is looked after while it runs: kept alive, and ended with what allowed it.
const KEEP_ALIVE_INTERVAL_MS = 15_000;

export type WatchOptions = {
  clock: Clock;
  /** Ends the stream at once. */
  signal: AbortSignal;
  /** What is sent every 15 s. */
  keepAlive: string;
  /** Asked every few seconds, and when the stream is over; null while it may go on. */
  endReason(): Promise<string | null>;
};

/** `frames` with keep-alives in between; ends with them, or as soon as there is a reason to. */
export async function* watched(
  frames: AsyncGenerator<string>,
  { clock, signal, keepAlive, endReason }: WatchOptions,
): AsyncGenerator<string> {
  let checkAtMs = clock.monotonicMs() + CHECK_INTERVAL_MS;
  let keepAliveAtMs = clock.monotonicMs() + KEEP_ALIVE_INTERVAL_MS;
  for await (const text of framesOrIdle(frames, { clock, idleMs: CHECK_INTERVAL_MS, signal })) {
    if (text !== IDLE) yield text;
    if (clock.monotonicMs() < checkAtMs) continue;
    checkAtMs = clock.monotonicMs() + CHECK_INTERVAL_MS;
    if ((await endReason()) !== null) return;
    if (clock.monotonicMs() < keepAliveAtMs) continue;
    keepAliveAtMs = clock.monotonicMs() + KEEP_ALIVE_INTERVAL_MS;
    yield keepAlive;
  }
}

/** `frames`; calls `leave` when they are over or given up. */
export async function* leaving(
  frames: AsyncGenerator<string>,
  leave: () => void,
): AsyncGenerator<string> {
  try {
    yield* frames;
  } finally {
    leave();
  }
}
