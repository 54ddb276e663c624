/** One operation on a node: a backup, a restore or a restore drill, as a row of the table of its kind. */
import type { OperationColumns } from '../platform/database/tables/backups.ts';
import type { BackupDrill, BackupLog, Pod, RestoreLog } from '../platform/database/tables.ts';
import type { Actor } from '../platform/identity.ts';

type Rows = { backup: BackupLog; restore: RestoreLog; drill: BackupDrill };
export type OperationKind = keyof Rows;

/** A row of the kind's table. */
export type OperationOf<K extends OperationKind> = { [P in K]: { kind: P } & Rows[P] }[K];
export type Operation = OperationOf<OperationKind>;

/** Identifies the row of an operation. */
export type OperationRef = { kind: OperationKind; id: string };

/** Returns the columns of a new operation that all kinds share. */
export function newOperation(
  pod: Pick<Pod, 'id' | 'account_id' | 'executor_id'>,
  repositoryId: string,
  { id, nowMs, actor }: { id: string; nowMs: number; actor: Actor },
): OperationColumns {
  return {
    id,
    account_id: pod.account_id,
    pod_id: pod.id,
    executor_id: pod.executor_id,
    repository_id: repositoryId,
    state: 'PENDING',
    stage: null,
    percent: 0,
    total_files: null,
    processed_files: null,
    total_bytes: null,
    processed_bytes: null,
    bytes_per_second: null,
    remaining_seconds: null,
    sent_at: null,
    cancel_at: null,
    heartbeat_at: nowMs,
    node_heartbeat_ms: null,
    abandoned_at: null,
    error_code: null,
    error_message: null,
    request_id: actor.requestId,
    created_at: nowMs,
    started_at: null,
    completed_at: null,
  };
}
