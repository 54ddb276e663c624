/** What can be asked of backups, restores and drills: begin, read, cancel. Requests are durable before they are answered. */
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
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import { createSealing } from '#shared/signing/sealing.ts';
import { inSpan } from '#shared/telemetry/tracing.ts';
import {
  isCancellable,
  isFinal,
  NO_PROGRESS,
  OperationFailure,
  operationView,
  recovered,
} from './operation.state.ts';
import type { OperationRow } from './operation.store.ts';
import { AgentStopping, CancelRequested, type RunPorts } from './operation-context.ts';
import { placeOfRepository, runOperation } from './run-operation.ts';

/** Running at a time on this host; more would only share its disk and network. */
const MAX_RUNNING = 2;
/** Drills beside them: nobody waits for one. */
const MAX_DRILLS = 1;
/** Unfinished on this host, those that wait included. */
const MAX_UNFINISHED = 200;
const MAX_LISTED = 100;
const FINISHED_KEPT_MS = 7 * 24 * 3_600_000;
/** Until what could not be written, as on a full disk, is tried again. */
const AGAIN_MS = 1_000;

export type OperationService = ReturnType<typeof createOperationService>;

const isOver = (row: OperationRow | null) => row === null || isFinal(row.stage);

type Wanted =
  | { kind: 'backup'; request: Omit<BackupRequest, 'repository'> }
  | { kind: 'restore'; request: Omit<RestoreRequest, 'repository'> }
  | { kind: 'verify'; request: Omit<DrillRequest, 'repository'> };

/** Nothing runs before `start`. */
export function createOperationService(
  deps: Omit<RunPorts, 'sealing'> & {
    secret: Uint8Array;
    random: Random;
    /** A backup, restore or drill is over. */
    onEnded?(row: OperationRow): void;
  },
) {
  const { store, clock, log } = deps;
  const ports: RunPorts = {
    ...deps,
    sealing: createSealing({ key: deps.secret, random: deps.random }),
  };
  const stopping = new AbortController();
  const turns = createSemaphore(MAX_RUNNING);
  const drillTurns = createSemaphore(MAX_DRILLS);
  const running = new Map<string, { cancelled: AbortController; ended: Promise<void> }>();

  function launch({ id, kind }: Pick<OperationRow, 'id' | 'kind'>): void {
    const cancelled = new AbortController();
    const ended = pursue(id, cancelled.signal, kind).finally(() => running.delete(id));
    running.set(id, { cancelled, ended });
  }

  /** Until it has ended, or the agent does. */
  async function pursue(id: string, cancelled: AbortSignal, kind: OperationRow['kind']) {
    const turn = kind === 'verify' ? drillTurns : turns;
    while (!(await attempt(id, cancelled, turn)) && !stopping.signal.aborted) {
      await clock.sleep(AGAIN_MS, stopping.signal).catch(() => undefined);
    }
  }

  /** Whether it has ended. */
  async function attempt(id: string, cancelled: AbortSignal, turn: typeof turns) {
    const signals = { cancelled, stopping: stopping.signal };
    const wish = {
      name: 'operation',
      kind: 'internal',
      attributes: { 'podwright.id': id },
    } as const;
    const work = () => inSpan(wish, () => runOperation(id, ports, signals));
    try {
      if (!takeUp(id)) return true;
      // One that is cancelled while it waits still has to write so.
      await turn.run(work, AbortSignal.any([cancelled, stopping.signal])).catch(work);
      const row = store.get(id);
      if (row !== null && isFinal(row.stage)) deps.onEnded?.(row);
      return isOver(row);
    } catch (error) {
      log.error({ operation_id: id, err: error }, 'an operation cannot be taken up');
      return false;
    }
  }

  /** Has a row begin where it can; whether there is anything to do. */
  function takeUp(id: string): boolean {
    const row = store.get(id);
    if (row === null || isOver(row)) return false;
    const again = recovered(row);
    if (again.stage === row.stage || again.stage === undefined) return true;
    store.put({ ...row, ...again, heartbeat_ms: clock.now() } as OperationRow);
    return true;
  }

  function fingerprintOf(podId: string, wanted: Wanted, repository: RepositoryAccess): string {
    const environment = Object.entries(repository.environment).toSorted();
    const content = [podId, wanted.kind, wanted.request, { ...repository, environment }];
    return createHmac('sha256', deps.secret).update(JSON.stringify(content)).digest('hex');
  }

  function requirePod(podId: string): void {
    if (!deps.isGone(podId)) return;
    throw new ApiError('pod_not_found', 'There is no such pod on this host');
  }

  function checkFree(podId: string, kind: OperationRow['kind']): void {
    if (kind !== 'verify') requirePod(podId);
    const active = store.activeOf(podId);
    if (active !== null) {
      throw new ApiError('BACKUP_STORAGE_BUSY', `A ${active.kind} of this pod is under way`, {
        details: { active_operation_id: active.id },
      });
    }
    if (store.unfinished(MAX_UNFINISHED).length < MAX_UNFINISHED) return;
    throw new ApiError('conflict', `${MAX_UNFINISHED} operations wait on this host`);
  }

  /** A repeat answers the row that is there, whatever has become of it. */
  function begin(podId: string, wanted: Wanted, repository: RepositoryAccess): OperationView {
    const id = wanted.request.operation_id;
    const fingerprint = fingerprintOf(podId, wanted, repository);
    const known = store.get(id);
    if (known !== null) {
      if (known.fingerprint === fingerprint) return operationView(known);
      throw new ApiError('conflict', 'This operation is known with other content');
    }
    checkFree(podId, wanted.kind);
    const nowMs = clock.now();
    const row: OperationRow = {
      ...wanted,
      ...{ id, pod_id: podId, stage: 'queued', fingerprint, progress: NO_PROGRESS },
      sealed_repository: ports.sealing.seal(JSON.stringify(repository), placeOfRepository(id)),
      ...{ journal: null, attempts: 0, cancel_requested: false, snapshot_id: null },
      ...{ quality: null, error: null, log: [] },
      ...{ started_ms: nowMs, heartbeat_ms: nowMs, finished_ms: null },
    };
    store.put(row);
    store.dropFinishedBefore(nowMs - FINISHED_KEPT_MS);
    launch(row);
    return operationView(row);
  }

  /** One that waits for its turn is alive, too: no row is written for that. */
  function viewOf(row: OperationRow): OperationView {
    const waits = row.stage === 'queued' && running.has(row.id);
    return operationView(waits ? { ...row, heartbeat_ms: clock.now() } : row);
  }

  function find(id: string): OperationRow {
    const row = store.get(id);
    if (row === null) throw new ApiError('not_found', 'There is no such operation on this host');
    return row;
  }

  return {
    /** Idempotent by `operation_id`; throws ApiError, `BACKUP_STORAGE_BUSY` while another one is under way. */
    beginBackup: (podId: string, { repository, ...request }: BackupRequest): OperationView =>
      begin(podId, { kind: 'backup', request }, repository),
    /** The same. */
    beginRestore: (podId: string, { repository, ...request }: RestoreRequest): OperationView =>
      begin(podId, { kind: 'restore', request }, repository),
    /** The same; the pod may be gone. */
    beginVerify: (podId: string, { repository, ...request }: DrillRequest): OperationView =>
      begin(podId, { kind: 'verify', request }, repository),
    /** What a restore would find at a path of the pod. Throws `bad_request` for one where nothing can be restored. */
    async lookAt(podId: string, path: string): Promise<{ state: TargetState }> {
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
    /** Unfinished ones first, oldest first; then those that ended last. Of one pod where one is given. */
    list(podId?: string): OperationView[] {
      const rows = [...store.unfinished(MAX_LISTED), ...store.finished(MAX_LISTED)];
      return rows
        .filter((row) => podId === undefined || row.pod_id === podId)
        .slice(0, MAX_LISTED)
        .map(viewOf);
    },
    /** Begins the cancellation; one that has ended stays as it is. `conflict` where a tree is being exchanged. */
    cancel(id: string): OperationView {
      const row = find(id);
      if (isFinal(row.stage)) return operationView(row);
      if (!isCancellable(row)) {
        throw new ApiError('conflict', 'The restored tree is being put in place', {
          hint: 'Wait for its end, then restore another backup.',
        });
      }
      const asked = { ...row, cancel_requested: true };
      store.put(asked);
      running.get(id)?.cancelled.abort(new CancelRequested());
      return operationView(asked);
    },
    /** Goes on with what an earlier agent has left. */
    start(): void {
      for (const row of store.unfinished(MAX_UNFINISHED)) launch(row);
    },
    /** Ends what runs; the rows are left for the next agent. */
    async stop(): Promise<void> {
      stopping.abort(new AgentStopping('the agent ends'));
      await Promise.all([...running.values()].map(({ ended }) => ended));
    },
  };
}
