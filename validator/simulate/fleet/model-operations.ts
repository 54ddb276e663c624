/** Backups, restores and drills on a modelled agent: accepted, then advanced by the owner of the agent. */
import type {
  BackupRequestInput,
  DrillRequestInput,
  OperationView,
  RestoreRequestInput,
} from '#shared/api/agent/operations.ts';
import { ApiError } from '#shared/runtime/errors.ts';

type Request = BackupRequestInput | RestoreRequestInput | DrillRequestInput;
type Progress = Partial<Omit<OperationView, 'id' | 'pod_id' | 'kind'>>;

export type ModelOperations = ReturnType<typeof createModelOperations>;

export function createModelOperations() {
  const views = new Map<string, OperationView>();
  /** Requests by operation id; a repeated request is stored once. */
  const requests = new Map<string, Request>();
  const calls: string[] = [];

  function get(id: string): OperationView {
    const view = views.get(id);
    if (view === undefined) throw new ApiError('not_found', `no operation ${id}`);
    return view;
  }

  function change(id: string, progress: Progress): OperationView {
    const view = { ...get(id), ...progress };
    views.set(id, view);
    return view;
  }

  const model = {
    views,
    requests,
    /** `backup <id>`, `restore <id>`, `verify <id>`, `cancel <id>`, in order, repeats included. */
    calls,
    /** Thrown instead of accepting an operation. */
    refusal: null as ApiError | null,
    /** Paths in pods that are not empty. */
    occupied: new Set<string>(),
    get,

    /** Adds an operation. Throws if the pod already has one that runs. */
    begin(kind: OperationView['kind'], podId: string, request: Request, nowMs: number) {
      const { operation_id: id } = request;
      calls.push(`${kind} ${id}`);
      if (model.refusal !== null) throw model.refusal;
      const present = views.get(id);
      if (present !== undefined) return present;
      const others = [...views.values()].filter((view) => view.pod_id === podId);
      if (others.some((view) => view.finished_ms === null)) {
        throw new ApiError('BACKUP_STORAGE_BUSY', 'another operation of this pod is running');
      }
      requests.set(id, request);
      const view: OperationView = {
        id,
        pod_id: podId,
        kind,
        stage: 'queued',
        percent: 0,
        total_files: null,
        processed_files: null,
        total_bytes: null,
        processed_bytes: null,
        bytes_per_second: null,
        remaining_seconds: null,
        snapshot_id: null,
        quality: null,
        changed_files: null,
        damage: null,
        lost_files: null,
        restarts_pod: null,
        obstacle: null,
        error: null,
        log: [],
        started_ms: nowMs,
        heartbeat_ms: nowMs,
        finished_ms: null,
      };
      views.set(id, view);
      return view;
    },

    cancel(id: string, nowMs: number): OperationView {
      calls.push(`cancel ${id}`);
      if (get(id).finished_ms !== null) return get(id);
      return change(id, { stage: 'cancelled', finished_ms: nowMs });
    },

    /** Advances an operation; every change updates its heartbeat. */
    progress: (id: string, progress: Progress) =>
      change(id, { heartbeat_ms: get(id).heartbeat_ms + 1, ...progress }),

    /** Completes an operation; a backup gets a snapshot id of one repeated digit. */
    finish(id: string, digit = 'a', quality: OperationView['quality'] = 'full'): void {
      const isBackup = get(id).kind === 'backup';
      change(id, {
        stage: 'done',
        percent: 100,
        finished_ms: get(id).started_ms + 1,
        ...(isBackup ? { snapshot_id: digit.repeat(64), quality } : {}),
      });
    },

    /** Fails an operation. */
    fail(id: string, error: NonNullable<OperationView['error']>): void {
      change(id, { stage: 'failed', error, finished_ms: get(id).started_ms + 1 });
    },
  };
  return model;
}
