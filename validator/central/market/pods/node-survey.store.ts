/** Queries on node_survey: which nodes the survey of unknown pods visits next. */
import { isPostgres } from '../../../database/engine.ts';
import type { Db } from '../../platform/database/tables.ts';

const ROW = 1;

/** Begins a round at `nowMs` if none was stored before, or if `again` is true. */
export async function beginRound(db: Db, nowMs: number, again: boolean): Promise<void> {
  const round = { after_id: '', due_at: nowMs };
  await db
    .insertInto('node_survey')
    .values({ id: ROW, ...round })
    .onConflict((conflict) => {
      const onId = conflict.column('id');
      return again ? onId.doUpdateSet(round) : onId.doNothing();
    })
    .execute();
}

export type SurveyTurn = {
  /** Nodes to visit. */
  ids: string[];
  /** True if the round has further nodes. */
  hasMore: boolean;
};

/**
 * Claims the next `limit` nodes of the round, in the order of their ids, and returns those that the pod sync does not
 * visit and that may receive rentals or have unknown pods. A new round begins `intervalMs` after the beginning of the
 * last one. Nodes that a process claimed before it was killed are visited in the next round.
 */
export async function claimNodes(
  tx: Db,
  { nowMs, intervalMs, limit }: { nowMs: number; intervalMs: number; limit: number },
): Promise<SurveyTurn> {
  const survey = await tx
    .selectFrom('node_survey')
    .selectAll()
    .where('id', '=', ROW)
    .$if(isPostgres(tx), (query) => query.forUpdate().skipLocked())
    .executeTakeFirst();
  // Another process claims nodes now.
  if (survey === undefined) return NONE;
  const { after_id: afterId, due_at: dueAtMs } = survey;
  const isNew = afterId === '';
  // A clock that was set back leaves a time beyond the interval.
  const isDue = dueAtMs <= nowMs || dueAtMs > nowMs + intervalMs;
  if (isNew && !isDue) return NONE;
  const nodes = await listNodesAfter(tx, afterId, limit);
  const hasMore = nodes.length === limit;
  await tx
    .updateTable('node_survey')
    .set({
      after_id: hasMore ? (nodes.at(-1)?.id ?? '') : '',
      due_at: isNew ? nowMs + intervalMs : dueAtMs,
    })
    .where('id', '=', ROW)
    .execute();
  return { ids: nodes.filter(isVisited).map(({ id }) => id), hasMore };
}

const NONE: SurveyTurn = { ids: [], hasMore: false };

type Node = Awaited<ReturnType<typeof listNodesAfter>>[number];

/** Reads at most `limit` rows, whichever share of them is visited. */
function listNodesAfter(tx: Db, afterId: string, limit: number) {
  return tx
    .selectFrom('executors')
    .leftJoin('sync_turns', 'sync_turns.executor_id', 'executors.id')
    .select(['executors.id', 'state', 'unknown_pods', 'sync_turns.executor_id as synced_id'])
    .where('executors.id', '>', afterId)
    .orderBy('executors.id')
    .limit(limit)
    .execute();
}

function isVisited({ state, unknown_pods: unknown, synced_id: syncedId }: Node): boolean {
  return syncedId === null && state !== 'removed' && (state === 'verified' || unknown > 0);
}
