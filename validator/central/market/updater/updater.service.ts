/** The validator's signed digest, asked for once however many agents want it. */
import type { Clock } from '#shared/runtime/clock.ts';
import type { SignedDigest } from '#shared/updates/update-manifest.ts';
import type { Agents } from '../../platform/ports.ts';

export type SignedDigests = ReturnType<typeof createSignedDigests>;

/** The validator keeps its answers for five minutes, failures too: this only takes the crowd off the way there. */
const CACHE_MS = 10_000;

export function createSignedDigests({ clock, agents }: { clock: Clock; agents: Agents }) {
  let cached: { atMs: number; answer: Promise<SignedDigest> } | null = null;
  return {
    /** Rejects with `upstream_unavailable` when validator or registry cannot be reached. */
    async current(): Promise<SignedDigest> {
      const nowMs = clock.monotonicMs();
      if (cached === null || nowMs - cached.atMs >= CACHE_MS) {
        cached = { atMs: nowMs, answer: agents.signedDigest() };
      }
      return cached.answer;
    },
  };
}
