/**
 * Guards streams while they run: sends keep-alives, and ends a stream when its pod has ended or its credential is
 * revoked.
 */
import { KEEP_ALIVE_INTERVAL_MS, liveFrames } from '#shared/http/keep-alive.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Database, Db, Pod } from '../../platform/database/tables.ts';

/** Interval at which a stream checks whether it may continue. */
export const CHECK_INTERVAL_MS = 5_000;

/** Access to pods, which the market provides. */
export type PodAccess = {
  /** Returns a pod of any account, even after the pod has ended. */
  findAnyPod(db: Db, podId: string): Promise<Pod | undefined>;
  /** Throws 404 unless the pod belongs to the account and has not ended. */
  requireOwnPod(db: Db, accountId: string, podId: string, nowMs: number): Promise<Pod>;
  /** Throws 404 unless the pod belongs or belonged to the account. */
  requireAnyOwnPod(db: Db, accountId: string, podId: string): Promise<unknown>;
};

export type Guarded = {
  /** Null for a stream of the account. */
  podId: string | null;
  /** Aborts when the credential that opened the stream is revoked or expires. */
  revoked: AbortSignal;
};

export type StreamGuard = ReturnType<typeof createStreamGuard>;

export function createStreamGuard(deps: {
  db: Database;
  pods: Pick<PodAccess, 'findAnyPod'>;
  stopping: AbortSignal;
}) {
  const { db, pods, stopping } = deps;

  async function isGone(podId: string): Promise<boolean> {
    const pod = await pods.findAnyPod(db, podId);
    return pod === undefined || pod.delete_requested_at !== null || pod.ended_at !== null;
  }

  return {
    /** Returns the reason why the stream must end; null while it may continue. */
    async endReason({ podId, revoked }: Guarded): Promise<string | null> {
      if (stopping.aborted) return 'server_shutdown';
      if (revoked.aborted) return 'credential_revoked';
      return podId !== null && (await isGone(podId)) ? 'pod_deleted' : null;
    },
  };
}

export type GuardOptions = {
  clock: Clock;
  /** Ends the stream at once. */
  signal: AbortSignal;
  /** Sent every KEEP_ALIVE_INTERVAL_MS. */
  keepAlive: string;
  /** Queried every CHECK_INTERVAL_MS; the stream ends when it returns a reason. */
  endReason(): Promise<string | null>;
};

/**
 * Returns the frames of a source with keep-alives in between. The signal passed to `open` aborts at the end of the
 * stream, whatever the reason.
 */
export async function* guarded(
  open: (ended: AbortSignal) => AsyncGenerator<string>,
  { clock, signal, keepAlive, endReason }: GuardOptions,
): AsyncGenerator<string> {
  const frames = liveFrames<string | null>({
    clock,
    open,
    idleFrame: null,
    idleMs: CHECK_INTERVAL_MS,
  });
  const end = () => frames.end();
  signal.addEventListener('abort', end, { once: true });
  if (signal.aborted) end();
  let checkAtMs = clock.monotonicMs() + CHECK_INTERVAL_MS;
  let keepAliveAtMs = clock.monotonicMs() + KEEP_ALIVE_INTERVAL_MS;
  try {
    for await (const text of frames) {
      if (text !== null) yield text;
      if (clock.monotonicMs() < checkAtMs) continue;
      checkAtMs = clock.monotonicMs() + CHECK_INTERVAL_MS;
      if ((await endReason()) !== null) return;
      if (clock.monotonicMs() < keepAliveAtMs) continue;
      keepAliveAtMs = clock.monotonicMs() + KEEP_ALIVE_INTERVAL_MS;
      yield keepAlive;
    }
  } finally {
    signal.removeEventListener('abort', end);
  }
}

/** Returns `frames`, and calls `release` when they end or the reader stops reading. */
export async function* released(
  frames: AsyncGenerator<string>,
  release: () => void,
): AsyncGenerator<string> {
  try {
    yield* frames;
  } finally {
    release();
  }
}
