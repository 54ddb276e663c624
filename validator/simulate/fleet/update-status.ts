/** The update status of an agent that follows its releases. */
import type { UpdateStatus } from '#shared/api/agent/update-status.ts';

/** Status of an agent that runs `digest` and last checked for an update just before `nowMs`. */
export function updateStatus(digest: string, nowMs: number): UpdateStatus {
  return {
    kind: 'image-digest',
    state: 'IDLE',
    running_version: '0.1.0',
    current_digest: digest,
    sequence: 1,
    target_digest: null,
    target_sequence: null,
    update_pending: false,
    reason: null,
    message: '',
    attempts: 0,
    since_ms: null,
    last_check_ms: nowMs,
    next_check_ms: nowMs,
  };
}
