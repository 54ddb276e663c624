/** Differences between the kinds of operations: the request to the node, and what a transition stores and records. */
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type {
  BackupRequestInput,
  FileList,
  OperationView,
  RepositoryAccess,
} from '#shared/api/agent/operations.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { EVENT_OUTCOMES } from '../delivery/events/event.schemas.ts';
import { recordEvent } from '../delivery/events/event.service.ts';
import { findAnyPod } from '../market/pods/pod-access.ts';
import type { BackupDrill, Db } from '../platform/database/tables.ts';
import type { Actor } from '../platform/identity.ts';
import { failedStatusOf, type VerifyStatus } from './operation.state.ts';
import {
  findRestore,
  setRestoreFindings,
  setSnapshot,
  setVerification,
} from './operation.store.ts';
import type { OperationKind, OperationOf } from './operation.ts';
import { markNotEmpty } from './repository.store.ts';

/** State change of an operation, from which its event is recorded. */
export type Transition = {
  actor: Actor;
  atMs: number;
} & (
  | { to: 'PENDING' | 'IN_PROGRESS' | 'CANCELLED' }
  | { to: 'COMPLETED'; view: OperationView }
  | { to: 'FAILED'; error: OperationError }
);

type OperationError = { code: string | null; message: string };

export type RecordDeps = { clock: Clock; random: Random };

/** Repository of an operation, with the credentials. `isMade`: false if the repository may not exist yet. */
export type OperationAccess = RepositoryAccess & { isMade: boolean };

export type OperationRenter = NonNullable<BackupRequestInput['renter']>;

/** Rules that differ between the kinds. */
type KindRules<K extends OperationKind> = {
  /** True if the row's pod is the target, so that the operation fails when the pod is removed. */
  isBoundToPod: boolean;
  /** True if the operation may be sent again to a node that has lost it. */
  isRepeatable: boolean;
  send(
    client: AgentClient,
    operation: OperationOf<K>,
    access: OperationAccess,
    renter: OperationRenter,
  ): Promise<OperationView>;
  /** Stores the node's log lines and findings. */
  saveLog?(tx: Db, operation: OperationOf<K>, view: OperationView): Promise<void>;
  /** Stores the result of a transition and records its event, in the transaction of the transition. */
  record(
    tx: Db,
    deps: RecordDeps,
    operation: OperationOf<K>,
    transition: Transition,
  ): Promise<void>;
};

const DAY_MS = 86_400_000;
const MAX_LOG_CHARS = 16_384;
const MAX_MESSAGE_CHARS = 500;
/** Maximum size of the sample that one drill reads. */
const DRILL_SAMPLE = { max_files: 50, max_bytes: 256 * 1024 * 1024 };
const DRILL_CANCELLED = 'Cancelled for a backup, a restore or the removal of the pod';

const KINDS: { [K in OperationKind]: KindRules<K> } = {
  backup: {
    isBoundToPod: true,
    isRepeatable: true,
    send(client, { id, pod_id, path }, { isMade, ...repository }, renter) {
      const request = { operation_id: id, path, repository, create_repository: !isMade, renter };
      return client.postBackup(pod_id, request);
    },
    async record(tx, deps, backup, transition) {
      if (transition.to === 'COMPLETED') {
        const { view, atMs } = transition;
        await setSnapshot(tx, backup.id, {
          snapshot_id: view.snapshot_id,
          quality: view.quality,
          changed_files_json: jsonOf(view.changed_files),
          expires_at: atMs + backup.retention_days * DAY_MS,
        });
        await markNotEmpty(tx, backup.repository_id, atMs);
      }
      await recordOutcome(tx, deps, backup, transition);
      if (transition.to === 'COMPLETED') await recordDamage(tx, deps, backup, transition);
    },
  },
  restore: {
    isBoundToPod: true,
    // A repeated restore would overwrite data that was written to the pod after the first restore.
    isRepeatable: false,
    send(client, restore, { isMade: _, ...repository }, renter) {
      const { id: operation_id, snapshot_id, source_path, target_path, mode } = restore;
      const request = { operation_id, snapshot_id, source_path, target_path, mode, repository };
      const salvage = restore.salvage === 1 ? { salvage: true } : {};
      return client.postRestore(restore.pod_id, { ...request, ...salvage, renter });
    },
    saveLog: (tx, { id }, view) =>
      setRestoreFindings(tx, id, {
        log: view.log.join('\n').slice(-MAX_LOG_CHARS),
        lost_files_json: jsonOf(view.lost_files),
        restarted_pod: view.restarts_pod === null ? null : view.restarts_pod ? 1 : 0,
      }),
    record: (tx, deps, restore, transition) => recordOutcome(tx, deps, restore, transition),
  },
  drill: {
    isBoundToPod: false,
    isRepeatable: true,
    send(client, { id: operation_id, pod_id, snapshot_id }, { isMade: _, ...repository }, renter) {
      const sample = { seed: operation_id, ...DRILL_SAMPLE };
      return client.postDrill(pod_id, { operation_id, snapshot_id, sample, repository, renter });
    },
    record(tx, deps, drill, transition) {
      return recordVerification(tx, deps, drill, verificationOf(transition));
    },
  },
};

export function rulesOf<K extends OperationKind>({ kind }: OperationOf<K>): KindRules<K> {
  return KINDS[kind as K];
}

/** Result of a drill, stored in the log of its backup. */
export type Verification = {
  status: VerifyStatus;
  actor: Actor;
  error?: OperationError;
  read?: { files: number | null; bytes: number | null };
};

function verificationOf(transition: Transition): Verification {
  const { actor, to } = transition;
  switch (to) {
    case 'COMPLETED': {
      const { processed_files: files, processed_bytes: bytes } = transition.view;
      return { status: 'PASSED', actor, read: { files, bytes } };
    }
    case 'FAILED': {
      const { error } = transition;
      return { status: failedStatusOf(error.code), actor, error };
    }
    case 'CANCELLED':
      return { status: 'CANCELLED', actor, error: { code: null, message: DRILL_CANCELLED } };
    default:
      return { status: to, actor };
  }
}

/**
 * Stores the result of a drill in the log of its backup and records the event. The start of a scheduled drill, and
 * progress, cause no event.
 */
export async function recordVerification(
  tx: Db,
  deps: RecordDeps,
  drill: Pick<BackupDrill, 'backup_id' | 'account_id' | 'pod_id' | 'executor_id'>,
  { status, actor, error, read }: Verification,
): Promise<void> {
  const isVerdict = status === 'PASSED' || status === 'FAILED';
  await setVerification(tx, drill.backup_id, {
    verify_status: status,
    verify_error: error?.message ?? null,
    verify_error_code: error?.code ?? null,
    ...(isVerdict ? { verified_at: deps.clock.now() } : {}),
    ...(read === undefined ? {} : { verified_files: read.files, verified_bytes: read.bytes }),
  });
  const isSilent = status === 'IN_PROGRESS' || (status === 'PENDING' && actor.auth === 'system');
  if (isSilent) return;
  const backup = { ...drill, kind: 'backup', id: drill.backup_id } as const;
  await recordOperationEvent(tx, deps, backup, {
    outcome: 'status',
    actor,
    detail: status === 'PENDING' ? 'verify_requested' : `verify_${status.toLowerCase()}`,
    error: error?.message ?? null,
  });
}

function jsonOf(list: FileList | null): string | null {
  return list === null ? null : JSON.stringify(list);
}

/** Stores damage that the node found in the repository during a backup, in the same form as the verdict of a drill. */
async function recordDamage(
  tx: Db,
  deps: RecordDeps,
  backup: OperationOf<'backup'>,
  { view, actor }: { view: OperationView; actor: Actor },
): Promise<void> {
  if (view.damage === null) return;
  const error = { code: 'RepositoryCorrupt', message: view.damage.slice(0, MAX_MESSAGE_CHARS) };
  const drilled = { ...backup, backup_id: backup.id };
  await recordVerification(tx, deps, drilled, { status: 'FAILED', actor, error });
}

/** Records the event of a transition of a backup or restore. Progress causes no event. */
async function recordOutcome(
  tx: Db,
  deps: RecordDeps,
  operation: OperationOf<'backup' | 'restore'>,
  transition: Transition,
): Promise<void> {
  const { actor, to } = transition;
  const record = (event: Omit<OperationEvent, 'actor'>) =>
    recordOperationEvent(tx, deps, operation, { actor, ...event });
  switch (to) {
    case 'PENDING':
      return record({ outcome: 'requested' });
    case 'COMPLETED': {
      const { quality, lost_files: lost } = transition.view;
      const isPartial = quality === 'partial' || (lost?.count ?? 0) > 0;
      const detail = isPartial ? { detail: 'partial' } : {};
      return record({ outcome: 'success', ...(await restartOf(tx, operation)), ...detail });
    }
    case 'FAILED': {
      const error = transition.error.message;
      return record({ outcome: 'failed', ...(await restartOf(tx, operation)), error });
    }
    case 'CANCELLED':
      return record({ outcome: 'status', detail: 'cancelled' });
    default:
  }
}

/** Returns the members of the event of a restore for which the node restarted the pod; none for other operations. */
async function restartOf(
  tx: Db,
  { kind, id }: OperationOf<'backup' | 'restore'>,
): Promise<Pick<OperationEvent, 'detail' | 'restartedPod'>> {
  if (kind === 'backup' || (await findRestore(tx, id))?.restarted_pod !== 1) return {};
  return { detail: 'pod_restarted', restartedPod: true };
}

type OperationEvent = {
  outcome: (typeof EVENT_OUTCOMES)[number];
  actor: Actor;
  error?: string | null;
  detail?: string;
  restartedPod?: true;
};

async function recordOperationEvent(
  tx: Db,
  deps: RecordDeps,
  operation: {
    kind: 'backup' | 'restore';
    id: string;
    account_id: string;
    pod_id: string;
    executor_id: string;
  },
  { outcome, actor, error, detail, restartedPod }: OperationEvent,
): Promise<void> {
  const pod = await findAnyPod(tx, operation.pod_id);
  await recordEvent(tx, deps, {
    accountId: operation.account_id,
    podId: operation.pod_id,
    subEventType: `${operation.kind}.${outcome}`,
    actor,
    reason: actor.auth === 'system' ? null : 'user_initiated',
    payload: {
      pod_name: pod?.pod_name ?? null,
      node: operation.executor_id,
      ...(error ? { error } : {}),
      ...(detail === undefined ? {} : { detail }),
      ...(restartedPod === undefined ? {} : { restarted_pod: restartedPod }),
      [operation.kind === 'backup' ? 'backup_log_id' : 'restore_log_id']: operation.id,
    },
  });
}
