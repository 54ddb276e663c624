/** Stores the node's reports about an operation: conditional transitions, each with its event. */
import type { OperationView } from '#shared/api/agent/operations.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { Database, Db } from '../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../platform/identity.ts';
import { changeOpen, moveOperation } from './operation.store.ts';
import type { Operation } from './operation.ts';
import { rulesOf, type Transition } from './operation-kinds.ts';

/** Maximum stored length of a node's error message. */
const MAX_MESSAGE_CHARS = 500;

export type Failure = {
  code: string | null;
  message: string;
  /** True if the node may still work on the operation and has to cancel it. */
  isAbandoned?: boolean;
};

/** Creates the recorder. Its functions do nothing if the operation has ended in the meantime. */
export function createOperationRecorder(deps: { db: Database; clock: Clock; random: Random }) {
  const { db, clock } = deps;

  const recordTransition = (tx: Db, operation: Operation, transition: Transition) =>
    rulesOf(operation).record(tx, deps, operation, transition);

  const actorOf = ({ request_id }: Operation) => ({ ...SYSTEM_ACTOR, requestId: request_id });

  async function complete(tx: Db, operation: Operation, view: OperationView): Promise<void> {
    const atMs = clock.now();
    const change = { percent: 100, completed_at: atMs, error_message: null };
    if (!(await moveOperation(tx, operation, 'COMPLETED', change))) return;
    const actor = actorOf(operation);
    await recordTransition(tx, operation, { to: 'COMPLETED', actor, atMs, view });
  }

  async function fail(tx: Db, operation: Operation, failure: Failure): Promise<void> {
    const atMs = clock.now();
    const { code, isAbandoned = false } = failure;
    const message = failure.message.slice(0, MAX_MESSAGE_CHARS);
    const change = {
      completed_at: atMs,
      error_code: code,
      error_message: message,
      abandoned_at: isAbandoned ? atMs : null,
    };
    if (!(await moveOperation(tx, operation, 'FAILED', change))) return;
    const actor = actorOf(operation);
    await recordTransition(tx, operation, { to: 'FAILED', actor, atMs, error: { code, message } });
  }

  async function cancel(tx: Db, operation: Operation, isAbandoned: boolean): Promise<void> {
    const atMs = clock.now();
    const abandoned_at = isAbandoned ? atMs : null;
    const change = { completed_at: atMs, abandoned_at, error_message: null };
    if (!(await moveOperation(tx, operation, 'CANCELLED', change))) return;
    await recordTransition(tx, operation, { to: 'CANCELLED', actor: actorOf(operation), atMs });
  }

  async function progress(tx: Db, operation: Operation, view: OperationView): Promise<void> {
    const atMs = clock.now();
    const change = progressOf(operation, view, atMs);
    if (operation.state !== 'PENDING') return changeOpen(tx, operation, change);
    const begun = { ...change, started_at: atMs };
    if (!(await moveOperation(tx, operation, 'IN_PROGRESS', begun))) return;
    await recordTransition(tx, operation, { to: 'IN_PROGRESS', actor: actorOf(operation), atMs });
  }

  return {
    /** Stores the operation's state as the node reports it; the operation may have ended on the node. */
    observed(operation: Operation, view: OperationView): Promise<void> {
      return db.transaction().execute(async (tx) => {
        await progress(tx, operation, view);
        await rulesOf(operation).saveLog?.(tx, operation, view);
        if (view.stage === 'cancelled') return cancel(tx, operation, false);
        if (view.stage === 'failed') return fail(tx, operation, failureOf(view));
        if (view.stage !== 'done') return;
        if (operation.kind === 'backup' && view.snapshot_id === null) {
          const message = 'The node reported no snapshot for a finished backup';
          return fail(tx, operation, { code: 'EngineFailed', message });
        }
        await complete(tx, operation, view);
      });
    },

    failed: (operation: Operation, failure: Failure) =>
      db.transaction().execute((tx) => fail(tx, operation, failure)),

    /** Fails an operation without progress, or cancels the operation if its cancellation was requested. */
    silent(operation: Operation): Promise<void> {
      const isAbandoned = operation.sent_at !== null;
      return db.transaction().execute((tx) => {
        if (operation.cancel_at !== null) return cancel(tx, operation, isAbandoned);
        const isDelayed = operation.state === 'PENDING' && operation.error_message !== null;
        const reason = isDelayed ? operation.error_message : 'The node does not answer';
        return fail(tx, operation, {
          code: 'NodeSilent',
          message: `${reason}. Try again when the node answers`,
          isAbandoned,
        });
      });
    },

    /** Records that the node has cancelled the operation or never received it. */
    cancelled: (operation: Operation) =>
      db.transaction().execute((tx) => cancel(tx, operation, false)),

    /** Stores why the operation has not begun, as its status message. */
    delayed: (operation: Operation, reason: string) =>
      changeOpen(db, operation, { error_message: reason.slice(0, MAX_MESSAGE_CHARS) }),
  };
}

/** Returns the columns of the node's progress. Time in the node's queue counts as progress. */
function progressOf(operation: Operation, view: OperationView, nowMs: number) {
  const isAlive = view.stage === 'queued' || view.heartbeat_ms !== operation.node_heartbeat_ms;
  return {
    stage: view.stage,
    percent: Math.max(operation.percent, Math.min(100, Math.max(0, view.percent))),
    total_files: view.total_files,
    processed_files: view.processed_files,
    total_bytes: view.total_bytes,
    processed_bytes: view.processed_bytes,
    bytes_per_second: view.bytes_per_second,
    remaining_seconds: view.remaining_seconds,
    node_heartbeat_ms: view.heartbeat_ms,
    // While the operation is open, the column contains the obstacle for which the operation waits.
    error_message: view.obstacle?.slice(0, MAX_MESSAGE_CHARS) ?? null,
    ...(isAlive ? { heartbeat_at: nowMs } : {}),
  };
}

function failureOf({ error }: OperationView): Failure {
  return { code: error?.code ?? null, message: error?.message ?? 'The node reported no reason' };
}
