/** Executes the operations of one executor on its agent and stores the results. Every step may be repeated. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { OperationView } from '#shared/api/agent/operations.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, type ErrorCode, messageOf } from '#shared/runtime/errors.ts';
import type { ClockTrust } from '#shared/runtime/guarded-clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import { renterOn } from '../market/pods/node-renter.ts';
import { findAnyPod } from '../market/pods/pod-access.ts';
import { batchedRows } from '../platform/database/batched.ts';
import type { Database, Pod } from '../platform/database/tables.ts';
import { isSilent, operationStep } from './operation.plan.ts';
import {
  clearAbandoned,
  hasOpenStartupRestore,
  listAbandonedOn,
  listOpenOn,
  listOrphans,
  listStrandedDrills,
  markSent,
  nodesWithOperations,
} from './operation.store.ts';
import type { Operation } from './operation.ts';
import { rulesOf } from './operation-kinds.ts';
import { createOperationRecorder } from './operation-recorder.ts';
import type { Repositories } from './repository.service.ts';

/** Error codes of a node that are retried: the node runs another operation or changes the pod. */
const TRANSIENT_CODES: readonly ErrorCode[] = ['BACKUP_STORAGE_BUSY', 'pod_state_conflict'];
/** Error code of a node that may have a different operation with the same id. */
const FOREIGN_CODE: ErrorCode = 'conflict';
const GONE = { code: 'PodGone', message: 'The pod was removed' };
const LOST = {
  code: 'NodeSilent',
  message: 'The node has lost the restore. Check whether its data is in place before you try again',
};
const BATCH = 100;

export type OperationSync = ReturnType<typeof createOperationSync>;

export function createOperationSync(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  log: Log;
  repositories: Repositories;
  trust: ClockTrust;
}) {
  const { db, clock, log, repositories, trust } = deps;
  const record = createOperationRecorder(deps);
  const startedMs = clock.now();
  const withOperations = batchedRows(
    (ids) => nodesWithOperations(db, ids),
    (id) => id,
  );

  /** Present time, and the time since which this process has observed the nodes. */
  const watched = () => {
    const nowMs = clock.now();
    return { nowMs, startedMs: Math.max(startedMs, trust.resumedAtMs()) };
  };

  /** Returns null while the storage does not answer. */
  async function accessOf(operation: Operation) {
    try {
      return await repositories.access(operation.repository_id, 'append');
    } catch (error) {
      log.warn({ err: error, operation_id: operation.id }, 'backup storage did not answer');
      await record.delayed(operation, 'The backup storage does not answer');
      return null;
    }
  }

  async function post(client: AgentClient, operation: Operation): Promise<OperationView | null> {
    const access = await accessOf(operation);
    if (access === null || !(await markSent(db, operation, clock.now()))) return null;
    return rulesOf(operation).send(client, operation, access, await renterOn(db, operation));
  }

  async function send(client: AgentClient, operation: Operation): Promise<void> {
    try {
      const view = await post(client, operation);
      if (view !== null) await record.observed(operation, view);
    } catch (error) {
      if (!(error instanceof ApiError) || isUnanswered(error)) throw error;
      const { code, message } = error;
      if (TRANSIENT_CODES.includes(code)) return record.delayed(operation, message);
      const isAbandoned = code === FOREIGN_CODE;
      await record.failed(operation, { code: 'Refused', message, isAbandoned });
    }
  }

  async function poll(client: AgentClient, operation: Operation): Promise<void> {
    const view = await unlessAbsent(client.getOperation(operation.id));
    if (view !== null) return record.observed(operation, view);
    if (rulesOf(operation).isRepeatable) return send(client, operation);
    await record.failed(operation, LOST);
  }

  async function cancel(
    client: AgentClient,
    operation: Operation,
    pod: Pod | undefined,
  ): Promise<void> {
    const view = await unlessAbsent(client.cancelOperation(operation.id));
    if (view !== null) return record.observed(operation, view);
    if (rulesOf(operation).isBoundToPod && pod?.delete_requested_at != null) {
      return record.failed(operation, GONE);
    }
    await record.cancelled(operation);
  }

  async function perform(
    client: AgentClient,
    operation: Operation,
    pod: Pod | undefined,
  ): Promise<void> {
    const step = operationStep(operation, pod);
    if (step === 'fail') return record.failed(operation, GONE);
    if (step === 'send') return send(client, operation);
    if (step === 'poll') return poll(client, operation);
    if (step === 'cancel') return cancel(client, operation, pod);
  }

  /**
   * Cancels operations that the central API has ended but that the node may still run. Returns true while the node
   * still runs any of these operations.
   */
  async function cancelAbandoned(client: AgentClient, executorId: string): Promise<boolean> {
    let isPending = false;
    for (const abandoned of await listAbandonedOn(db, executorId)) {
      const view = await unlessAbsent(client.cancelOperation(abandoned.id));
      if (view === null || view.finished_ms !== null) await clearAbandoned(db, abandoned);
      else isPending = true;
    }
    return isPending;
  }

  async function failSilent(executorId: string): Promise<void> {
    if (trust.isSuspect() || (await withOperations(executorId)).length === 0) return;
    for (const operation of await listOpenOn(db, executorId)) {
      const pod = await findAnyPod(db, operation.pod_id);
      if (isSilent(operation, pod, watched())) {
        await record.silent(operation);
      }
    }
  }

  return {
    /**
     * Runs one pass with an agent that answers. Returns true if another pass is due soon. Rejects with ApiError when
     * the agent no longer answers.
     */
    async pass(client: AgentClient, executorId: string): Promise<boolean> {
      if ((await withOperations(executorId)).length === 0) return false;
      const isPending = await cancelAbandoned(client, executorId);
      const operations = await listOpenOn(db, executorId);
      if (operations.length === 0) return isPending;
      for (const operation of operations) {
        const pod = await findAnyPod(db, operation.pod_id);
        try {
          await perform(client, operation, pod);
        } catch (error) {
          if (!(error instanceof ApiError) || isUnanswered(error)) throw error;
          log.warn({ operation_id: operation.id, code: error.code }, messageOf(error));
        }
      }
      await failSilent(executorId);
      return true;
    },

    /** Handles an executor whose agent does not answer. */
    unanswered: failSilent,

    /** Returns true if a restore that was requested with the pod's rental is open. */
    restoresAtStart: (podId: string) => hasOpenStartupRestore(db, podId),

    /**
     * Ends operations whose executor may no longer be polled: operations of ended pods, and drills on nodes without
     * pods.
     */
    async failOrphans(): Promise<void> {
      for (const operation of await listOrphans(db, BATCH)) await record.failed(operation, GONE);
      for (const drill of await listStrandedDrills(db, BATCH)) {
        if (isSilent(drill, undefined, watched())) {
          await record.silent(drill);
        }
      }
    },
  };
}

/** Resolves to null for 404: the node does not have the operation. */
async function unlessAbsent(answer: Promise<OperationView>): Promise<OperationView | null> {
  return answer.catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  });
}

/** Returns true for errors that leave open whether the call had an effect. */
function isUnanswered(error: ApiError): boolean {
  return error.status >= 500 || error.status === 401 || error.status === 429;
}
