/** Writes what a node said of an operation into its row: conditional moves, each with its event. */
import type { OperationView } from '#shared/api/agent/operations.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { BackupDrill, BackupLog, Database, Db } from '../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../platform/identity.ts';
import { noteLog, noteSnapshot } from './backup.store.ts';
import { noteMade } from './backup-repository.store.ts';
import { type DrillNews, GAVE_WAY, noteDrill } from './drill.record.ts';
import { failedStatusOf } from './drill.state.ts';
import { tellOperation } from './operation.events.ts';
import { changeOpen, moveOperation, type Operation } from './operation.store.ts';

const DAY_MS = 86_400_000;
/** Of a node's words in a row. */
const MAX_MESSAGE_CHARS = 500;
const MAX_LOG_CHARS = 16_384;

export type Failure = {
  code: string | null;
  message: string;
  /** True: its node may go on with it, and is to be told. */
  isAbandoned?: boolean;
};

/** Every function ends without effect when the row has been settled meanwhile. */
export function createOperationRecorder(deps: { db: Database; clock: Clock; random: Random }) {
  const { db, clock } = deps;

  const actorOf = ({ request_id }: Operation) => ({ ...SYSTEM_ACTOR, requestId: request_id });

  function tell(
    tx: Db,
    operation: Exclude<Operation, { table: 'backup_drills' }>,
    outcome: 'success' | 'failed' | 'status',
    told: { error?: string; detail?: string } = {},
  ): Promise<void> {
    return tellOperation(tx, deps, operation, { outcome, actor: actorOf(operation), ...told });
  }

  const note = (tx: Db, drill: BackupDrill & Operation, news: Omit<DrillNews, 'actor'>) =>
    noteDrill(tx, deps, drill, { ...news, actor: actorOf(drill) });

  async function complete(tx: Db, operation: Operation, view: OperationView): Promise<void> {
    const nowMs = clock.now();
    const change = { percent: 100, completed_at: nowMs, error_message: null };
    if (!(await moveOperation(tx, operation, 'COMPLETED', change))) return;
    if (operation.table === 'backup_drills') {
      const read = { files: view.processed_files, bytes: view.processed_bytes };
      return note(tx, operation, { status: 'PASSED', read });
    }
    if (operation.table === 'backup_logs') {
      await noteSnapshot(tx, operation.id, madeBy(operation, view, nowMs));
      await noteMade(tx, operation.repository_id, nowMs);
    }
    await tell(tx, operation, 'success', view.quality === 'partial' ? { detail: 'partial' } : {});
  }

  async function failIn(tx: Db, operation: Operation, failure: Failure): Promise<void> {
    const nowMs = clock.now();
    const { code, isAbandoned = false } = failure;
    const message = failure.message.slice(0, MAX_MESSAGE_CHARS);
    const change = {
      ...{ completed_at: nowMs, error_code: code, error_message: message },
      abandoned_at: isAbandoned ? nowMs : null,
    };
    if (!(await moveOperation(tx, operation, 'FAILED', change))) return;
    if (operation.table === 'backup_drills') {
      return note(tx, operation, { status: failedStatusOf(code), error: { code, message } });
    }
    await tell(tx, operation, 'failed', { error: message });
  }

  async function cancelIn(tx: Db, operation: Operation, isAbandoned: boolean): Promise<void> {
    const nowMs = clock.now();
    const change = { completed_at: nowMs, abandoned_at: isAbandoned ? nowMs : null };
    if (!(await moveOperation(tx, operation, 'CANCELLED', change))) return;
    if (operation.table === 'backup_drills') {
      const error = { code: null, message: GAVE_WAY };
      return note(tx, operation, { status: 'CANCELLED', error });
    }
    await tell(tx, operation, 'status', { detail: 'cancelled' });
  }

  return {
    /** The node has it; it may have settled it already. */
    observed(operation: Operation, view: OperationView): Promise<void> {
      return db.transaction().execute(async (tx) => {
        const progress = progressOf(operation, view, clock.now());
        if (operation.state === 'PENDING') {
          const begun = { ...progress, started_at: clock.now(), error_message: null };
          const isBegun = await moveOperation(tx, operation, 'IN_PROGRESS', begun);
          if (isBegun && operation.table === 'backup_drills') {
            await note(tx, operation, { status: 'IN_PROGRESS' });
          }
        } else {
          await changeOpen(tx, operation, progress);
        }
        if (operation.table === 'restore_logs') {
          await noteLog(tx, operation.id, view.log.join('\n').slice(-MAX_LOG_CHARS));
        }
        if (view.stage === 'cancelled') return cancelIn(tx, operation, false);
        if (view.stage === 'failed') return failIn(tx, operation, failureOf(view));
        if (view.stage !== 'done') return;
        if (operation.table === 'backup_logs' && view.snapshot_id === null) {
          const message = 'The node names no snapshot for the backup that it made';
          return failIn(tx, operation, { code: 'EngineFailed', message });
        }
        await complete(tx, operation, view);
      });
    },

    failed: (operation: Operation, failure: Failure) =>
      db.transaction().execute((tx) => failIn(tx, operation, failure)),

    /** Nothing is heard of it; one whose end was asked for counts as ended. */
    silent(operation: Operation): Promise<void> {
      const isAbandoned = operation.sent_at !== null;
      return db.transaction().execute((tx) => {
        if (operation.cancel_at !== null) return cancelIn(tx, operation, isAbandoned);
        const reason = operation.error_message ?? 'The node has fallen silent';
        return failIn(tx, operation, {
          code: 'NodeSilent',
          message: `${reason}. Try again when it answers`,
          isAbandoned,
        });
      });
    },

    /** The node has ended it, or never heard of it. */
    cancelled: (operation: Operation) =>
      db.transaction().execute((tx) => cancelIn(tx, operation, false)),

    /** Why it has not begun yet, for whoever asks. */
    delayed: (operation: Operation, reason: string) =>
      changeOpen(db, operation, { error_message: reason.slice(0, MAX_MESSAGE_CHARS) }),
  };
}

/** Time in a node's queue is no silence. */
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
    ...(isAlive ? { heartbeat_at: nowMs } : {}),
  };
}

function madeBy(operation: BackupLog, view: OperationView, nowMs: number) {
  return {
    snapshot_id: view.snapshot_id,
    quality: view.quality,
    expires_at: nowMs + operation.retention_days * DAY_MS,
  };
}

function failureOf({ error }: OperationView): Failure {
  return { code: error?.code ?? null, message: error?.message ?? 'The node gave no reason' };
}
