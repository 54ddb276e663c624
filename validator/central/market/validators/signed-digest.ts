/** Cache of the validator's signed release digest: concurrent agents share one query. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { SignedDigest } from '#shared/updates/update-manifest.ts';
import type { Agents } from '../../platform/ports.ts';

export type SignedDigests = ReturnType<typeof createSignedDigests>;

/**
 * Time for which a digest is cached. It is short, because the validator itself caches its responses and failures for
 * five minutes.
 */
const CACHE_MS = 10_000;

export function createSignedDigests({ clock, agents }: { clock: Clock; agents: Agents }) {
  let cached: { atMs: number; answer: Promise<SignedDigest> } | null = null;
  return {
    /** Rejects with `upstream_unavailable` if the validator or the registry is unreachable. */
    async current(): Promise<SignedDigest> {
      const nowMs = clock.monotonicMs();
      if (cached === null || nowMs - cached.atMs >= CACHE_MS) {
        cached = { atMs: nowMs, answer: agents.signedDigest() };
      }
      return cached.answer;
    },
  };
}
