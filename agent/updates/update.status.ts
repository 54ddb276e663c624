/** What GET /update-status and the inventory say of the row of the update. Pure. */
import type { UpdateStatus } from '#shared/api/agent/update-status.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { NO_UPDATE, type UpdateRow } from './update.state.ts';

/** Of an agent that is not set up to update itself. */
export function noUpdates(): UpdateStatus {
  return statusOf(NO_UPDATE, null, null);
}

/** `running`: digests of the image that runs; null while nobody has looked. */
export function statusOf(
  row: UpdateRow,
  kind: UpdateStatus['kind'],
  running: readonly string[] | null,
): UpdateStatus {
  const current = running?.find((digest) => digest === row.digest) ?? running?.[0] ?? null;
  const isKnown = current !== null && row.digest !== null;
  return {
    kind,
    state: row.state,
    running_version: VERSION,
    current_digest: current,
    sequence: row.sequence,
    target_digest: row.target?.digest ?? null,
    target_sequence: row.target?.sequence ?? null,
    update_pending: isKnown ? current !== row.digest : null,
    reason: row.reason,
    message: row.message,
    attempts: row.attempts,
    since_ms: row.since_ms === 0 ? null : row.since_ms,
    last_check_ms: row.last_check_ms,
    next_check_ms: row.last_check_ms === null ? null : row.next_check_ms,
  };
}
