/** Whether a stream may go on: pods are deleted and credentials revoked meanwhile. */

import { findAnyPod } from '../../market/pods/pod-access.ts';
import type { Database } from '../../platform/database/tables.ts';

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
