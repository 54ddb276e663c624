/**
 * Compares the pods of all nodes with the database, at the start and then every ten minutes. The pod sync compares only
 * nodes with pods in the database, and an old copy of the database may have none.
 */
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import { type Loop, startLoop } from '#shared/runtime/loop.ts';
import type { Database } from '../../platform/database/tables.ts';
import type { Agents } from '../../platform/ports.ts';
import type { UnknownPods } from './unknown-pods.ts';

const INTERVAL_MS = 600_000;
/** Number of nodes that are queried at once. */
const MAX_CONCURRENT = 4;

export function createUnknownPodsJob(deps: {
  db: Database;
  clock: Clock;
  log: Log;
  agents: Pick<Agents, 'clientOf'>;
  unknownPods: Pick<UnknownPods, 'survey'>;
}) {
  const { clock, log } = deps;
  let loop: Loop | null = null;

  /** A node that does not answer is surveyed by a later run, or by the sync before it receives a pod. */
  async function survey(executorId: string): Promise<void> {
    const client = deps.agents.clientOf(executorId);
    try {
      await deps.unknownPods.survey(client, executorId, await client.listPods());
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      log.debug({ executor_id: executorId, err: error }, 'node was not surveyed');
    }
  }

  async function runOnce(signal?: AbortSignal): Promise<void> {
    const ids = (await nodesToSurvey(deps.db)).values();
    const work = async () => {
      for (const id of ids) {
        if (signal?.aborted === true) return;
        await survey(id);
      }
    };
    await Promise.all(Array.from({ length: MAX_CONCURRENT }, work));
  }

  return {
    runOnce,
    /** Runs soon, because an operator has decided about a pod. */
    wake: () => loop?.wake(),
    start(): void {
      loop ??= startLoop({
        clock,
        intervalMs: INTERVAL_MS,
        run: runOnce,
        onError: (error) => log.error({ err: error }, 'comparing the pods of nodes failed'),
      });
    },
    async stop(): Promise<void> {
      await loop?.stop();
      loop = null;
    },
  };
}

/** Nodes that can receive rentals; nodes with unknown pods first. */
async function nodesToSurvey(db: Database): Promise<string[]> {
  const rows = await db
    .selectFrom('executors')
    .select('id')
    .where((eb) => eb.or([eb('state', '=', 'verified'), eb('unknown_pods', '>', 0)]))
    .where('state', '<>', 'removed')
    .orderBy('unknown_pods', 'desc')
    .orderBy('id')
    .execute();
  return rows.map(({ id }) => id);
}
