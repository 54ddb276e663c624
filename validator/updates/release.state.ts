/** How one release follows another. Pure. */
import type { AgentReleaseRow } from '../store/tables.ts';
import type { TagContent } from './image-registry.ts';

/** What agents are to run by a release. */
export function targetOf({ rollback_digest: back, digest }: AgentReleaseRow): string {
  return back ?? digest;
}

/** The release of what the tag names now: `newest` itself while it is that one's. `permille`: who gets it at first. */
export function releaseOf(
  { digest, platforms }: TagContent,
  newest: AgentReleaseRow | undefined,
  { version, permille, nowMs }: { version: string; permille: number; nowMs: number },
): AgentReleaseRow {
  if (newest?.digest === digest) return newest;
  return {
    sequence: (newest?.sequence ?? 0) + 1,
    digest,
    previous_digest: newest === undefined ? null : targetOf(newest),
    platforms_json: JSON.stringify(platforms),
    version,
    min_sequence: newest?.min_sequence ?? 0,
    min_agent: newest?.min_agent ?? '0.0.0',
    rollout_permille: permille,
    rollback_digest: null,
    rollback_reason: '',
    notes: '',
    since_ms: nowMs,
  };
}

/**
 * The way back: everybody is to run what was run before `newest`, at once. It has a sequence of its own, so that the
 * manifest that it takes back, kept by somebody and sent again, is too old. Null where there is nothing to go back to.
 */
export function rollbackOf(
  newest: AgentReleaseRow,
  { reason, nowMs }: { reason: string; nowMs: number },
): AgentReleaseRow | null {
  const { sequence, previous_digest: back } = newest;
  if (back === null || newest.rollback_digest !== null) return null;
  return {
    ...newest,
    sequence: sequence + 1,
    previous_digest: newest.digest,
    rollback_digest: back,
    rollback_reason: reason,
    rollout_permille: 1_000,
    since_ms: nowMs,
  };
}
