/**
 * Pods on nodes that the database does not have, or has in an older generation: the database is an old copy. Nothing
 * changes such a pod until an operator decides, and its node receives no new rentals.
 */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { PodView } from '#shared/api/agent/pod.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import { recordAudit } from '../../platform/audit/audit.service.ts';
import { batchedRows } from '../../platform/database/batched.ts';
import { idsJson, isAmong, prepared, type Slots } from '../../platform/database/prepared.ts';
import type { Database, Db, Pod, UnknownPod } from '../../platform/database/tables.ts';
import { lockRow, moneyTransaction } from '../../platform/database/transactions.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { recordDrift } from './drift.ts';
import { acknowledgeGeneration, findKnown, findPod } from './pod.store.ts';
import { beginRemoval } from './pod-removal.ts';
import { unknownAmong } from './unknown-pods.plan.ts';

export type UnknownPods = ReturnType<typeof createUnknownPods>;

/** Limit of the findings of one survey that are logged, because a node may report any number of pods. */
const MAX_ANNOUNCED = 20;

export type Decision = { executorId: string; podId: string; operator: string; reason: string };

export function createUnknownPods(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  log: Log;
  /** Queues an immediate sync of this executor. */
  wake(executorId: string): void;
}) {
  const { db, clock, log } = deps;
  const knownPod = batchedRows(
    (ids) => findKnown(db, ids),
    (pod) => pod.id,
  );
  const recordsOn = batchedRows(
    (ids) => listRecords(db, ids),
    (record) => record.executor_id,
  );

  /** Replaces the records of the node by those of its present unknown pods. `added` are the new ones. */
  async function record(
    executorId: string,
    views: readonly PodView[],
  ): Promise<{ unknown: UnknownPod[]; added: UnknownPod[] }> {
    const running = views.filter(({ desired }) => desired === 'running');
    // Rows are read after the views: the row of a pod is written before the node receives the pod.
    const rows = (await Promise.all(running.map(({ id }) => knownPod(id)))).flat();
    const found = unknownAmong(views, executorId, new Map(rows.map((row) => [row.id, row])));
    const records = await recordsOn(executorId);
    const before = new Map(records.map((row) => [row.pod_id, row]));
    if (found.length === 0 && before.size === 0) return { unknown: [], added: [] };
    const nowMs = clock.now();
    const unknown = found.map((pod): UnknownPod => {
      const { found_at = nowMs, remove_requested_at = null } = before.get(pod.pod_id) ?? {};
      return { ...pod, found_at, remove_requested_at };
    });
    const added = unknown.filter((pod) => !before.has(pod.pod_id));
    const isSame = added.length === 0 && unknown.length === before.size;
    if (!isSame) await db.transaction().execute((tx) => replace(tx, executorId, unknown));
    return { unknown, added };
  }

  async function announce(found: readonly UnknownPod[]): Promise<void> {
    for (const { pod_id, executor_id, kind } of found.slice(0, MAX_ANNOUNCED)) {
      log.error({ pod_id, executor_id, kind }, 'node runs a pod that the database does not know');
      await recordDrift(deps, { kind: 'pod_unknown', executor_id, pod_id });
    }
  }

  /** Removes the pods whose removal an operator requested. Rejects with ApiError if the agent does not answer. */
  async function removeRequested(client: AgentClient, unknown: readonly UnknownPod[]) {
    for (const { pod_id: id, kind, remove_requested_at: requested } of unknown) {
      if (kind !== 'missing' || requested === null) continue;
      await client.deletePod(id).catch((error: unknown) => {
        // It has ended since the node was queried.
        if (!(error instanceof ApiError) || error.status !== 404) throw error;
      });
    }
  }

  async function decide(
    { executorId, podId, operator, reason }: Decision,
    action: 'pod.adopt' | 'pod.remove',
    act: (tx: Db, unknown: UnknownPod, nowMs: number) => Promise<void>,
  ): Promise<UnknownPod> {
    const nowMs = clock.now();
    const decided = await moneyTransaction(deps, async (tx) => {
      await lockRow(tx, 'executors', executorId);
      await lockRow(tx, 'pods', podId);
      const unknown = await findUnknown(tx, executorId, podId);
      if (unknown === undefined)
        throw new ApiError('not_found', 'The node has no such unknown pod');
      await act(tx, unknown, nowMs);
      const entry = { operator, action, subject_type: 'pod', subject_id: podId, reason };
      await recordAudit(tx, { ...entry, at_ms: nowMs });
      return (await findUnknown(tx, executorId, podId)) ?? unknown;
    });
    deps.wake(executorId);
    return decided;
  }

  return {
    /**
     * Compares the node's pods with the database, records the unknown pods and removes those whose removal was
     * requested. Call it after the views were read. Returns the unknown pods by id.
     */
    async survey(
      client: AgentClient,
      executorId: string,
      views: readonly PodView[],
    ): Promise<ReadonlyMap<string, UnknownPod>> {
      const { unknown, added } = await record(executorId, views);
      await announce(added);
      await removeRequested(client, unknown);
      return new Map(unknown.map((pod) => [pod.pod_id, pod]));
    },

    /** Lists unknown pods of all nodes, the oldest first. */
    /** Returns a page of the findings, the oldest first. `page` counts from 1. */
    list: ({ page, limit }: { page: number; limit: number }) =>
      db
        .selectFrom('unknown_pods')
        .selectAll()
        .orderBy('found_at')
        .orderBy('executor_id')
        .orderBy('pod_id')
        .offset((page - 1) * limit)
        .limit(limit)
        .execute(),

    async count(): Promise<number> {
      const { n } = await db
        .selectFrom('unknown_pods')
        .select((eb) => eb.fn.countAll<number>().as('n'))
        .executeTakeFirstOrThrow();
      return Number(n);
    },

    /**
     * Accepts the generation on the node as the newest of a pod that the database has. Throws `conflict` for a missing
     * pod: neither its account nor its price is known.
     */
    adopt: (decision: Decision) =>
      decide(decision, 'pod.adopt', async (tx, { kind, generation }) => {
        if (kind === 'missing') {
          throw new ApiError('conflict', 'The database has neither account nor price of the pod', {
            hint: 'Restore a newer copy of the database, or remove the pod.',
          });
        }
        await acknowledgeGeneration(tx, decision.podId, generation);
        await tx
          .deleteFrom('unknown_pods')
          .where('executor_id', '=', decision.executorId)
          .where('pod_id', '=', decision.podId)
          .execute();
        await countAgain(tx, decision.executorId);
      }),

    /** Removes the pod with its data from its node. */
    remove: (decision: Decision) =>
      decide(decision, 'pod.remove', async (tx, { kind, executor_id, pod_id }, nowMs) => {
        const pod = kind === 'newer' ? await findPod(tx, pod_id) : undefined;
        if (pod !== undefined && pod.delete_requested_at === null) {
          await beginRemoval(tx, deps, pod, { actor: SYSTEM_ACTOR, reason: 'node_removed' });
        }
        await tx
          .updateTable('unknown_pods')
          .set({ remove_requested_at: nowMs })
          .where('executor_id', '=', executor_id)
          .where('pod_id', '=', pod_id)
          .where('remove_requested_at', 'is', null)
          .execute();
      }),
  };
}

/** Returns true while an operator must decide about the pod. */
export async function isUnknown(db: Db, pod: Pick<Pod, 'id' | 'executor_id'>): Promise<boolean> {
  return (await findUnknown(db, pod.executor_id, pod.id)) !== undefined;
}

function findUnknown(db: Db, executorId: string, podId: string): Promise<UnknownPod | undefined> {
  return db
    .selectFrom('unknown_pods')
    .selectAll()
    .where('executor_id', '=', executorId)
    .where('pod_id', '=', podId)
    .executeTakeFirst();
}

async function replace(tx: Db, executorId: string, unknown: readonly UnknownPod[]): Promise<void> {
  await lockRow(tx, 'executors', executorId);
  const ids = unknown.map((pod) => pod.pod_id);
  await tx
    .deleteFrom('unknown_pods')
    .where('executor_id', '=', executorId)
    .$if(ids.length > 0, (query) => query.where('pod_id', 'not in', ids))
    .execute();
  for (const pod of unknown) {
    await tx
      .insertInto('unknown_pods')
      .values(pod)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
  await countAgain(tx, executorId);
}

/** Stores the number of the node's unknown pods in its row, which the market reads. */
async function countAgain(tx: Db, executorId: string): Promise<void> {
  const { length } = await listRecords(tx, [executorId]);
  await tx
    .updateTable('executors')
    .set({ unknown_pods: length })
    .where('id', '=', executorId)
    .where('unknown_pods', '<>', length)
    .execute();
}

const records = prepared((db, { ids }: Slots<{ ids: string }>) =>
  db
    .selectFrom('unknown_pods')
    .selectAll()
    .where(isAmong(db, 'executor_id', ids)),
);

async function listRecords(db: Db, executorIds: readonly string[]): Promise<UnknownPod[]> {
  return (await records(db, { ids: idsJson(executorIds) })).rows;
}
