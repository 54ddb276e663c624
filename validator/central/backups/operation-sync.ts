/** Brings the backups, restores and drills of one executor to its agent, and what comes of them back: every step may be repeated. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { OperationView } from '#shared/api/agent/operations.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { ApiError, type ErrorCode, messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import { findAnyPod } from '../market/pods/pod-access.ts';
import type { Database, Pod } from '../platform/database/tables.ts';
import { hasOpenStart } from './backup.store.ts';
import type { BackupRepositories } from './backup-repository.service.ts';
import { listStrandedDrills } from './drill.store.ts';
import { isSilent, operationStep } from './operation.plan.ts';
import { createOperationRecorder } from './operation.record.ts';
import {
  clearAbandoned,
  listAbandonedOn,
  listOpenOn,
  listOrphans,
  markSent,
  type Operation,
} from './operation.store.ts';

/** Refusals that may pass: the node still ends another operation, or is changing the pod. */
const PASSING_CODES: readonly ErrorCode[] = ['BACKUP_STORAGE_BUSY', 'pod_state_conflict'];
/** After these the node may hold something else under the id. */
const FOREIGN_CODE: ErrorCode = 'conflict';
const GONE = { code: 'PodGone', message: 'The pod was removed' };
const LOST = {
  code: 'NodeSilent',
  message: 'The node knows of it no more: look whether it was done before you try again',
};
const BATCH = 100;
/** What one drill reads back at most. */
const DRILL_SAMPLE = { max_files: 50, max_bytes: 256 * 1024 * 1024 };

export type OperationSync = ReturnType<typeof createOperationSync>;

export function createOperationSync(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  log: Log;
  repositories: BackupRepositories;
}) {
  const { db, clock, log, repositories } = deps;
  const record = createOperationRecorder(deps);
  const startedMs = clock.now();

  /** Null where the storage does not say what opens the repository. */
  async function accessOf(operation: Operation) {
    try {
      return await repositories.access(operation.repository_id, 'append');
    } catch (error) {
      log.warn({ err: error, operation_id: operation.id }, 'the backup storage did not answer');
      await record.delayed(operation, 'The backup storage does not answer');
      return null;
    }
  }

  async function post(client: AgentClient, operation: Operation): Promise<OperationView | null> {
    const access = await accessOf(operation);
    if (access === null || !(await markSent(db, operation, clock.now()))) return null;
    const { isMade, ...repository } = access;
    const { id: operation_id, pod_id: podId } = operation;
    if (operation.table === 'backup_logs') {
      const { path } = operation;
      const create_repository = !isMade;
      return client.postBackup(podId, { operation_id, path, repository, create_repository });
    }
    if (operation.table === 'backup_drills') {
      const { snapshot_id } = operation;
      const sample = { seed: operation_id, ...DRILL_SAMPLE };
      return client.postDrill(podId, { operation_id, snapshot_id, sample, repository });
    }
    const { snapshot_id, source_path, target_path, mode } = operation;
    const restore = { operation_id, snapshot_id, source_path, target_path, mode, repository };
    return client.postRestore(podId, restore);
  }

  async function send(client: AgentClient, operation: Operation): Promise<void> {
    try {
      const view = await post(client, operation);
      if (view !== null) await record.observed(operation, view);
    } catch (error) {
      if (!(error instanceof ApiError) || isUnanswered(error)) throw error;
      const { code, message } = error;
      if (PASSING_CODES.includes(code)) return record.delayed(operation, message);
      const isAbandoned = code === FOREIGN_CODE;
      await record.failed(operation, { code: 'Refused', message, isAbandoned });
    }
  }

  /** A node that has lost it gets it again, but for a restore: done twice, it would take what was written since. */
  async function ask(client: AgentClient, operation: Operation): Promise<void> {
    const view = await unlessAbsent(client.getOperation(operation.id));
    if (view !== null) return record.observed(operation, view);
    return operation.table === 'restore_logs'
      ? record.failed(operation, LOST)
      : send(client, operation);
  }

  async function cancel(
    client: AgentClient,
    operation: Operation,
    pod: Pod | undefined,
  ): Promise<void> {
    const view = await unlessAbsent(client.cancelOperation(operation.id));
    if (view !== null) return record.observed(operation, view);
    const isGoing = operation.table !== 'backup_drills' && pod?.delete_requested_at != null;
    if (isGoing) return record.failed(operation, GONE);
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
    if (step === 'ask') return ask(client, operation);
    if (step === 'cancel') return cancel(client, operation, pod);
  }

  /** What was settled without the node: it is not to go on with it. True while it still does. */
  async function endAbandoned(client: AgentClient, executorId: string): Promise<boolean> {
    let isAwaited = false;
    for (const abandoned of await listAbandonedOn(db, executorId)) {
      const view = await unlessAbsent(client.cancelOperation(abandoned.id));
      if (view === null || view.finished_ms !== null) await clearAbandoned(db, abandoned);
      else isAwaited = true;
    }
    return isAwaited;
  }

  async function giveUpSilent(executorId: string): Promise<void> {
    for (const operation of await listOpenOn(db, executorId)) {
      const pod = await findAnyPod(db, operation.pod_id);
      if (isSilent(operation, pod, { nowMs: clock.now(), startedMs })) {
        await record.silent(operation);
      }
    }
  }

  return {
    /** One pass with an agent that answers; whether to come back soon. Rejects with ApiError when it no longer does. */
    async pass(client: AgentClient, executorId: string): Promise<boolean> {
      const isAwaited = await endAbandoned(client, executorId);
      const operations = await listOpenOn(db, executorId);
      // As nearly always.
      if (operations.length === 0) return isAwaited;
      for (const operation of operations) {
        const pod = await findAnyPod(db, operation.pod_id);
        try {
          await perform(client, operation, pod);
        } catch (error) {
          if (!(error instanceof ApiError) || isUnanswered(error)) throw error;
          log.warn({ operation_id: operation.id, code: error.code }, messageOf(error));
        }
      }
      await giveUpSilent(executorId);
      return true;
    },

    /** Of an agent that does not answer. */
    unanswered: giveUpSilent,

    /** Whether a restore that was rented with the pod is still to end. */
    restoresAtStart: (podId: string) => hasOpenStart(db, podId),

    /** Ends what waits for a pod that has ended, or for a node without pods: its executor may not be asked any more. */
    async failOrphans(): Promise<void> {
      for (const operation of await listOrphans(db, BATCH)) await record.failed(operation, GONE);
      for (const drill of await listStrandedDrills(db, BATCH)) {
        const operation = { table: 'backup_drills', ...drill } as const;
        if (isSilent(operation, undefined, { nowMs: clock.now(), startedMs })) {
          await record.silent(operation);
        }
      }
    },
  };
}

/** Null where the node answers that it knows no such operation. */
async function unlessAbsent(asked: Promise<OperationView>): Promise<OperationView | null> {
  return asked.catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  });
}

/** No usable answer: whether the call had effect is unknown. */
function isUnanswered(error: ApiError): boolean {
  return error.status >= 500 || error.status === 401 || error.status === 429;
}
