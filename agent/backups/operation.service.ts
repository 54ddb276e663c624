/** Begins, reports and cancels backups, restores and drills. A request is stored before it is answered. */
import { createHmac } from 'node:crypto';
import type {
  BackupRequest,
  DrillRequest,
  OperationView,
  RepositoryAccess,
  RestoreRequest,
  TargetState,
} from '#shared/api/agent/operations.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { createSealing } from '#shared/signing/sealing.ts';
import { inSpan } from '#shared/telemetry/tracing.ts';
import {
  isCancellable,
  isFinal,
  NO_PROGRESS,
  OperationFailure,
  operationView,
  recoveryPatch,
} from './operation.state.ts';
import type { OperationRow } from './operation.store.ts';
import { AgentStopping, CancelRequested, type RunPorts } from './operation-context.ts';
import { placeOfRepository, runOperation } from './run-operation.ts';
import { createTurns } from './turns.ts';

/** Maximum number of concurrent operations on this host; more would only compete for its disk and network. */
const MAX_RUNNING = 2;
/** Maximum number of concurrent drills, in addition to MAX_RUNNING operations. */
const MAX_DRILLS = 1;
/** Maximum number of unfinished operations on this host, queued ones included. */
const MAX_UNFINISHED = 200;
const MAX_LISTED = 100;
const FINISHED_KEPT_MS = 7 * 24 * 3_600_000;
/** Delay before a failed write is retried, for example on a full disk. */
const AGAIN_MS = 1_000;
/** Time for which an obstacle is shown. The storage client reports an obstacle at least once a minute while it lasts. */
const OBSTACLE_MS = 90_000;

export type OperationService = ReturnType<typeof createOperationService>;

const isOver = (row: OperationRow | null) => row === null || isFinal(row.stage);

type Wanted =
  | { kind: 'backup'; request: Omit<BackupRequest, 'repository'> }
  | { kind: 'restore'; request: Omit<RestoreRequest, 'repository'> }
  | { kind: 'verify'; request: Omit<DrillRequest, 'repository'> };

/** Starts no operation before `start`. */
export function createOperationService(
  deps: Omit<RunPorts, 'sealing' | 'meet'> & {
    secret: Uint8Array;
    random: Random;
    /** Called when a backup, restore or drill has ended. */
    onEnded?(row: OperationRow): void;
  },
) {
  const { store, clock, log } = deps;
  const obstacles = new Map<string, { text: string; untilMs: number }>();
  const ports: RunPorts = {
    ...deps,
    meet(id, text) {
      obstacles.set(id, { text, untilMs: clock.monotonicMs() + OBSTACLE_MS });
    },
    sealing: createSealing({ key: deps.secret, random: deps.random }),
  };
  const stopping = new AbortController();
  const turns = createTurns(MAX_RUNNING, clock);
  const drillTurns = createTurns(MAX_DRILLS, clock);
  const running = new Map<string, { cancelled: AbortController; ended: Promise<void> }>();

  function launch(row: OperationRow): void {
    const { id } = row;
    const cancelled = new AbortController();
    const ended = runUntilOver(row, cancelled.signal).finally(() => {
      running.delete(id);
      obstacles.delete(id);
    });
    running.set(id, { cancelled, ended });
  }

  const turnsOf = (kind: OperationRow['kind']) => (kind === 'verify' ? drillTurns : turns);

  /** Repeats attempts until the operation has ended or the agent stops. */
  async function runUntilOver(row: OperationRow, cancelled: AbortSignal) {
    while (!(await attempt(row, cancelled)) && !stopping.signal.aborted) {
      await clock.sleep(AGAIN_MS, stopping.signal).catch(() => undefined);
    }
  }

  /** Returns true once the operation has ended. */
  async function attempt({ id, kind, pod_id, request }: OperationRow, cancelled: AbortSignal) {
    // Older central APIs do not name the renter: each pod then counts as a renter.
    const { id: renter, is_present: isPresent } = request.renter ?? {
      id: pod_id,
      is_present: true,
    };
    const signals = { cancelled, stopping: stopping.signal };
    const wish = {
      name: 'operation',
      kind: 'internal',
      attributes: { 'podwright.id': id },
    } as const;
    const work = () => inSpan(wish, () => runOperation(id, ports, signals));
    try {
      if (!requeue(id)) return true;
      // A cancelled operation leaves the queue but still records its end.
      const signal = AbortSignal.any([cancelled, stopping.signal]);
      await turnsOf(kind).run({ id, renter, isPresent }, work, signal).catch(work);
      const row = store.get(id);
      if (row !== null && isFinal(row.stage)) deps.onEnded?.(row);
      return isOver(row);
    } catch (error) {
      log.error({ operation_id: id, err: error }, 'operation could not be started');
      return false;
    }
  }

  /** Requeues an interrupted row. Returns true if there is work to do. */
  function requeue(id: string): boolean {
    const row = store.get(id);
    if (row === null || isOver(row)) return false;
    const again = recoveryPatch(row);
    if (again.stage === row.stage || again.stage === undefined) return true;
    store.put({ ...row, ...again, heartbeat_ms: clock.now() } as OperationRow);
    return true;
  }

  function fingerprintOf(podId: string, wanted: Wanted, repository: RepositoryAccess): string {
    const environment = Object.entries(repository.environment).toSorted();
    // A repeated request may differ in whether the renter has a pod on this host.
    const { renter: _, ...request } = wanted.request;
    const content = [podId, wanted.kind, request, { ...repository, environment }];
    return createHmac('sha256', deps.secret).update(JSON.stringify(content)).digest('hex');
  }

  function requirePod(podId: string): void {
    if (!deps.isGone(podId)) return;
    throw new ApiError('pod_not_found', 'No such pod on this host');
  }

  function checkFree(podId: string, kind: OperationRow['kind']): void {
    if (kind !== 'verify') requirePod(podId);
    const active = store.activeOf(podId);
    if (active !== null) {
      throw new ApiError('BACKUP_STORAGE_BUSY', `A ${active.kind} of this pod is running`, {
        details: { active_operation_id: active.id },
      });
    }
    if (store.unfinished(MAX_UNFINISHED).length < MAX_UNFINISHED) return;
    throw new ApiError('conflict', `This host has ${MAX_UNFINISHED} unfinished operations`);
  }

  /** Begins an operation. A repeated request returns the existing operation in its current state. */
  function begin(podId: string, wanted: Wanted, repository: RepositoryAccess): OperationView {
    const id = wanted.request.operation_id;
    const fingerprint = fingerprintOf(podId, wanted, repository);
    const known = store.get(id);
    if (known !== null) {
      if (known.fingerprint === fingerprint) return viewOf(known);
      throw new ApiError('conflict', 'An operation with this id and other content exists');
    }
    checkFree(podId, wanted.kind);
    const nowMs = clock.now();
    const row: OperationRow = {
      ...wanted,
      id,
      pod_id: podId,
      stage: 'queued',
      fingerprint,
      progress: NO_PROGRESS,
      sealed_repository: ports.sealing.seal(JSON.stringify(repository), placeOfRepository(id)),
      journal: null,
      attempts: 0,
      cancel_requested: false,
      snapshot_id: null,
      quality: null,
      changed: null,
      error: null,
      log: [],
      started_ms: nowMs,
      heartbeat_ms: nowMs,
      finished_ms: null,
    };
    store.put(row);
    store.dropFinishedBefore(nowMs - FINISHED_KEPT_MS);
    launch(row);
    return viewOf(row);
  }

  /**
   * Returns the wire form. A queued operation shows the current time as its heartbeat, which its row does not store.
   */
  function viewOf(row: OperationRow): OperationView {
    const waits = row.stage === 'queued' && running.has(row.id);
    const shown = waits ? { ...row, heartbeat_ms: clock.now() } : row;
    return operationView(shown, obstacleOf(row));
  }

  function obstacleOf({ id, kind }: OperationRow): string | null {
    const met = obstacles.get(id);
    const isMet = met !== undefined && met.untilMs > clock.monotonicMs();
    return turnsOf(kind).reasonOf(id) ?? (isMet ? met.text : null);
  }

  function find(id: string): OperationRow {
    const row = store.get(id);
    if (row === null) throw new ApiError('not_found', 'No such operation on this host');
    return row;
  }

  return {
    /** Idempotent by `operation_id`. Throws ApiError, `BACKUP_STORAGE_BUSY` while another operation of the pod runs. */
    beginBackup: (podId: string, { repository, ...request }: BackupRequest): OperationView =>
      begin(podId, { kind: 'backup', request }, repository),
    /** Begins a restore; otherwise like `beginBackup`. */
    beginRestore: (podId: string, { repository, ...request }: RestoreRequest): OperationView =>
      begin(podId, { kind: 'restore', request }, repository),
    /** Begins a drill; like `beginBackup`, but the pod may have been removed. */
    beginVerify: (podId: string, { repository, ...request }: DrillRequest): OperationView =>
      begin(podId, { kind: 'verify', request }, repository),
    /**
     * Returns what a restore would find at a path of the pod. Throws `bad_request` for a path that cannot be restored
     * to.
     */
    async restoreTarget(podId: string, path: string): Promise<{ state: TargetState }> {
      requirePod(podId);
      const { targetStateOf } = await import('./data-path.ts');
      try {
        return { state: await targetStateOf(podId, path, deps) };
      } catch (error) {
        if (!(error instanceof OperationFailure)) throw error;
        throw new ApiError('bad_request', error.message);
      }
    },
    get: (id: string): OperationView => viewOf(find(id)),
    /** Returns unfinished operations, oldest first, then finished operations, latest first; of one pod if given. */
    list(podId?: string): OperationView[] {
      const rows = [...store.unfinished(MAX_LISTED), ...store.finished(MAX_LISTED)];
      return rows
        .filter((row) => podId === undefined || row.pod_id === podId)
        .slice(0, MAX_LISTED)
        .map(viewOf);
    },
    /**
     * Requests cancellation; has no effect on a finished operation. Throws `conflict` while a tree is being exchanged.
     */
    cancel(id: string): OperationView {
      const row = find(id);
      if (isFinal(row.stage)) return operationView(row);
      if (!isCancellable(row)) {
        throw new ApiError('conflict', 'The restored tree is being put in place', {
          hint: 'Wait until the restore has ended, then restore another backup.',
        });
      }
      const asked = { ...row, cancel_requested: true };
      store.put(asked);
      running.get(id)?.cancelled.abort(new CancelRequested());
      return operationView(asked);
    },
    /** Continues the operations that an earlier agent left unfinished. */
    start(): void {
      for (const row of store.unfinished(MAX_UNFINISHED)) launch(row);
    },
    /** Stops running operations; the next agent continues them. */
    async stop(): Promise<void> {
      stopping.abort(new AgentStopping('the agent is stopping'));
      await Promise.all([...running.values()].map(({ ended }) => ended));
    },
  };
}
