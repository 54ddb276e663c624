/** Collects samples from all executors that are due. */
import { startLoop } from '#shared/runtime/loop.ts';
import { COLLECT_INTERVAL_MS, type CollectDeps, createCollector } from './collect.ts';
import { claimCollections } from './metric-history.store.ts';

/** Pause after a pass that found fewer executors than it may claim. */
const POLL_INTERVAL_MS = 2_000;
/** Maximum number of collections in one pass, which run in parallel. */
const BATCH = 16;

/**
 * The two loops of the job. Agents that did not answer the last time have a separate loop, because waiting for them
 * must not delay other agents.
 */
const KINDS = [{ failing: false }, { failing: true }] as const;

export function createCollectionJob(deps: CollectDeps) {
  const { db, clock, log } = deps;
  const collector = createCollector(deps);

  /** Returns true if there may be more executors that are due. */
  async function pass(kind: (typeof KINDS)[number]): Promise<boolean> {
    const nowMs = clock.now();
    const { claims, isFull } = await db.transaction().execute((tx) =>
      claimCollections(tx, {
        ...kind,
        nowMs,
        untilMs: nowMs + COLLECT_INTERVAL_MS,
        limit: BATCH,
      }),
    );
    if (claims.length > 0) await collector.collect(claims);
    return isFull;
  }

  return {
    /** Collects from every executor that is due. Tests call it instead of `start`. */
    async runOnce(): Promise<void> {
      for (const kind of KINDS) while (await pass(kind));
    },

    start(): { stop(): Promise<void> } {
      const onError = (error: unknown) => log.error({ err: error }, 'collecting samples failed');
      const loops = KINDS.map((kind) => {
        let more = false;
        return startLoop({
          clock,
          intervalMs: () => (more ? 0 : POLL_INTERVAL_MS),
          async run() {
            more = false;
            more = await pass(kind);
          },
          onError,
        });
      });
      return {
        async stop() {
          await Promise.all(loops.map((loop) => loop.stop()));
        },
      };
    },
  };
}
