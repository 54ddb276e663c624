/**
 * Compares the pods of the nodes that the pod sync does not visit with the database, at the start and then every ten
 * minutes, because an old copy of the database may lack pods of any node. The processes on one database share a round.
 */
import { type Clock, withDeadline } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import type { Database } from '../../platform/database/tables.ts';
import type { Agents } from '../../platform/ports.ts';
import type { Processes } from '../../platform/processes.ts';
import { beginRound, claimNodes } from './node-survey.store.ts';
import type { UnknownPods } from './unknown-pods.ts';

export const SURVEY_INTERVAL_MS = 600_000;
/** Number of nodes that one claim reads. */
const BATCH = 128;
/** Number of visits above which nothing is claimed. Silent nodes occupy a visit until their calls time out. */
const MAX_VISITS = 256;
/** Pauses between two claims during a round, and between two rounds. */
const CLAIM_INTERVAL_MS = 500;
const ROUND_POLL_MS = 5_000;
/** Time after which a stop abandons the visits that still run. */
const STOP_LIMIT_MS = 5_000;

export function createUnknownPodsJob(deps: {
  db: Database;
  clock: Clock;
  log: Log;
  processes: Pick<Processes, 'others'>;
  agents: Pick<Agents, 'clientOf'>;
  unknownPods: Pick<UnknownPods, 'survey'>;
  intervalMs: number;
  /** Shortest pause between two polls for a round that is due, if it is longer than the usual one. */
  pollMs: number;
}) {
  const { db, clock, log } = deps;
  const requested = new Set<string>();
  const visits = new Set<Promise<void>>();
  let hasMore = false;
  let isStopped = false;
  let loop: Loop | null = null;

  /** A node that does not answer is visited in a later round, or by the sync before it receives a pod. */
  async function visit(executorId: string): Promise<void> {
    const client = deps.agents.clientOf(executorId);
    try {
      await deps.unknownPods.survey(client, executorId, await client.listPods());
    } catch (error) {
      const level = error instanceof ApiError || isStopped ? 'debug' : 'error';
      log[level]({ executor_id: executorId, err: error }, 'node was not surveyed');
    }
  }

  function beginVisits(ids: Iterable<string>): void {
    for (const id of ids) {
      const visiting = visit(id).finally(() => visits.delete(visiting));
      visits.add(visiting);
    }
  }

  async function claim(): Promise<string[]> {
    if (visits.size >= MAX_VISITS) return [];
    const options = { nowMs: clock.now(), intervalMs: deps.intervalMs, limit: BATCH };
    const turn = await db.transaction().execute((tx) => claimNodes(tx, options));
    hasMore = turn.hasMore;
    return turn.ids;
  }

  /** Begins the requested visits, and those of the next nodes of the round. */
  async function proceed(): Promise<void> {
    const claimed = await claim();
    const ids = new Set([...requested, ...claimed]);
    requested.clear();
    beginVisits(ids);
  }

  /** A process that starts alone may serve an old copy of the database, whose last round is no longer valid. */
  async function enter(): Promise<void> {
    const others = await deps.processes.others(db);
    await beginRound(db, clock.now(), others.length === 0);
  }

  return {
    /** Runs a whole round. Tests call it instead of `start`. */
    async runOnce(): Promise<void> {
      await beginRound(db, clock.now(), true);
      do {
        await proceed();
        await Promise.all(visits);
      } while (hasMore);
    },

    /** Visits the node soon, because an operator has decided about a pod. */
    wake(executorId: string): void {
      requested.add(executorId);
      loop?.wake();
    },

    start(): void {
      let hasEntered = false;
      loop ??= startLoop({
        clock,
        intervalMs: () => (hasMore ? CLAIM_INTERVAL_MS : Math.max(ROUND_POLL_MS, deps.pollMs)),
        async run() {
          if (!hasEntered) await enter();
          hasEntered = true;
          await proceed();
        },
        onError: (error) => log.error({ err: error }, 'comparing the pods of nodes failed'),
      });
    },

    /** Waits for the visits that run, at most STOP_LIMIT_MS. */
    async stop(): Promise<void> {
      isStopped = true;
      await loop?.stop();
      await withDeadline(clock, STOP_LIMIT_MS, Promise.all(visits)).catch(() => undefined);
    },
  };
}
