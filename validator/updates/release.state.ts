/** Sequences of agent releases: new digests and rollbacks. Pure. */
import type { AgentReleaseRow } from '../store/tables.ts';
import type { TagContent } from './image-registry.ts';

/** The digest that a release requires. */
export function targetOf({ rollback_digest: back, digest }: AgentReleaseRow): string {
  return back ?? digest;
}

/**
 * Returns the release for the tag's digest, which is `newest` if the digest is unchanged. `permille`: the initial
 * rollout.
 */
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
 * Returns a rollback to the digest before `newest`, rolled out to all agents. The rollback has a new sequence, so that
 * agents reject the revoked manifest as too old. Returns null if there is no earlier digest, or if `newest` is a
 * rollback.
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
