/** Polls the feed of deposits. A feed that fails leaves the stored deposits unchanged. */
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import type { CollateralFeed } from '../../platform/ports.ts';
import { applyFeed, type CollateralDeps } from './collateral.service.ts';

const INTERVAL_MS = 60_000;

export type CollateralJobDeps = CollateralDeps & { log: Log; feed: CollateralFeed | null };
export type CollateralJob = ReturnType<typeof createCollateralJob>;

export function createCollateralJob({ db, clock, log, feed }: CollateralJobDeps) {
  let loop: Loop | null = null;
  /** The subjects that this process last applied. Another process applies the same feed. */
  let applied: string | null = null;

  async function runOnce(): Promise<void> {
    // Without a feed, the deposits of an earlier configured feed are removed once.
    const subjects = feed === null ? [] : await feed.subjects();
    const text = subjects.join(' ');
    if (text === applied) return;
    const { added, removed } = await applyFeed({ db, clock }, subjects);
    applied = text;
    if (added + removed > 0) log.info({ added, removed }, 'collateral deposits updated');
  }

  return {
    /** Runs one pass. Rejects if the feed fails. */
    runOnce,

    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs: INTERVAL_MS,
        run: runOnce,
        onError: (error) => log.warn({ err: error }, 'collateral feed failed'),
      });
    },

    stop: async () => loop?.stop(),
  };
}
