/** Routes of backups, restores and drills. */
import type { HttpServer } from '#shared/http/server.ts';
import type { Db } from '../platform/database/tables.ts';
import { answerOnce, type OnceDeps } from '../platform/idempotency/once.ts';
import { callerOf, userOf } from '../platform/identity.ts';
import { IdParams } from '../platform/wire.ts';
import {
  BACKUP_FIELD_NAMES,
  BackupLog,
  BackupLogPage,
  BackupTriggered,
  ManualBackupTriggerRequest,
  PageQuery,
  PodIdParams,
  PodUuidParams,
  RESTORE_FIELD_NAMES,
  RestoreLog,
  RestoreLogPage,
  RestoreRequest,
  RestoreTriggered,
} from './backup.schemas.ts';
import { targetTaken } from './begin-operation.ts';
import type { OperationService } from './operation.service.ts';

const tags = ['Backups'];
const config = { auth: 'user' } as const;

export type BackupRoutesDeps = OnceDeps & {
  operations: OperationService;
  wake(executorId: string): void;
  /** Returns the id of the pod that `id` names: its own id, or the id of its node (pod_executor_id). */
  podIdNamedBy(accountId: string, id: string): Promise<string>;
};

export function registerBackupRoutes(api: HttpServer, deps: BackupRoutesDeps): void {
  registerBackups(api, deps);
  registerDrills(api, deps);
  registerRestores(api, deps);
}

function registerBackups(api: HttpServer, deps: BackupRoutesDeps): void {
  const { operations, wake, podIdNamedBy, ...once } = deps;
  const response = { 200: BackupLog };
  api.post(
    '/pods/:pod_id/backup',
    {
      config: { ...config, once: 'backup', fieldNames: BACKUP_FIELD_NAMES },
      schema: {
        tags,
        summary: 'Back up a pod now',
        description:
          "Starts a backup of the folder in the pod's schedule; without a schedule, of the first volume of the pod, or of `/root` if the pod has no volume. The pod keeps running. Poll the backup for its progress.",
        errors: {
          pod_not_found: 'the account has no such pod',
          pod_state_conflict: 'the state of the pod does not allow a backup',
          BACKUP_STORAGE_BUSY:
            'a backup or restore of the pod is running; `detail.active_operation_id` names it',
          bad_request: 'this marketplace has no storage for backups',
        },
        params: PodIdParams,
        body: ManualBackupTriggerRequest.nullish(),
        response: { 200: BackupTriggered },
      },
    },
    async (request, reply) => {
      const podId = await podIdNamedBy(userOf(request).accountId, request.params.pod_id);
      let begunOn: string | null = null;
      const effects = async (tx: Db): Promise<BackupTriggered> => {
        const begun = await operations.beginBackup(
          tx,
          callerOf(request),
          podId,
          request.body ?? {},
        );
        begunOn = begun.executor_id;
        return { success: true, backup_log_id: begun.id };
      };
      await answerOnce(once, { request, reply }, { schema: BackupTriggered, effects });
      if (begunOn !== null) wake(begunOn);
      return reply;
    },
  );
  const pages = { querystring: PageQuery, response: { 200: BackupLogPage } };
  api.get(
    '/backup-logs',
    {
      config,
      schema: {
        tags,
        summary: 'List backups',
        description:
          "Returns the account's backups, newest first, including backups of deleted pods.",
        ...pages,
      },
    },
    (request) => operations.listBackups(userOf(request), request.query),
  );
  api.get(
    '/backup-logs/pod/:pod_id',
    {
      config,
      schema: {
        tags,
        summary: 'List backups of a pod',
        description:
          'Returns the backups of one pod, newest first, even after the removal of the pod.',
        errors: { pod_not_found: 'the account never had such a pod' },
        params: PodIdParams,
        ...pages,
      },
    },
    async (request) => {
      const caller = userOf(request);
      const podId = await podIdNamedBy(caller.accountId, request.params.pod_id);
      return operations.listBackupsOf(caller, podId, request.query);
    },
  );
  api.get(
    '/backup-logs/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Read a backup',
        description: 'Returns one backup with its progress.',
        errors: {
          not_found: 'no backup has this id',
          forbidden: 'the backup belongs to another account',
        },
        params: IdParams,
        response,
      },
    },
    (request) => operations.getBackup(userOf(request), request.params.id),
  );
  api.delete(
    '/backup-logs/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Delete a backup',
        description:
          'Marks the backup as deleted; the next cleanup removes its data from the storage.',
        errors: {
          bad_request: 'the backup is running; cancel it first',
          not_found: 'no backup has this id',
          forbidden: 'the backup belongs to another account',
        },
        retry: 'Safe: a repeat changes nothing.',
        params: IdParams,
        response,
      },
    },
    (request) => operations.removeBackup(userOf(request), request.params.id),
  );
  api.post(
    '/backup-logs/:id/cancel',
    {
      config,
      schema: {
        tags,
        summary: 'Cancel a backup',
        description: 'Stops a running backup. Its data is discarded.',
        errors: {
          bad_request: 'the backup has ended',
          not_found: 'no backup has this id',
          forbidden: 'the backup belongs to another account',
        },
        retry: 'Safe: a repeat is refused and changes nothing.',
        params: IdParams,
        response,
      },
    },
    (request) => operations.cancelBackup(callerOf(request), request.params.id),
  );
}

function registerDrills(api: HttpServer, { operations, wake, ...once }: BackupRoutesDeps): void {
  api.post(
    '/backup-logs/:id/verify',
    {
      config: { ...config, once: 'backup-verify' },
      schema: {
        tags,
        summary: 'Verify a backup with a restore drill',
        description:
          'Starts a drill: a node with a pod of the account restores a sample of the backup and compares hashes. Nothing is written to the pod.',
        errors: {
          not_found: 'no backup has this id',
          forbidden: 'the backup belongs to another account',
          BACKUP_STORAGE_BUSY: 'a backup or restore is running',
        },
        params: IdParams,
        response: { 200: BackupLog },
      },
    },
    async (request, reply) => {
      let begunOn: string | null = null;
      const effects = async (tx: Db) => {
        const { id } = request.params;
        const { executorId, log } = await operations.beginDrill(tx, callerOf(request), id);
        begunOn = executorId;
        return log;
      };
      await answerOnce(once, { request, reply }, { schema: BackupLog, effects });
      if (begunOn !== null) wake(begunOn);
      return reply;
    },
  );
}

function registerRestores(api: HttpServer, deps: BackupRoutesDeps): void {
  const { operations, wake, podIdNamedBy, ...once } = deps;
  api.post(
    '/pods/:pod_uuid/restore',
    {
      config: { ...config, once: 'restore', fieldNames: RESTORE_FIELD_NAMES },
      schema: {
        tags,
        summary: 'Restore a backup into a pod',
        description:
          'Writes the backup into a folder of a running pod. The node first writes the files beside the folder and checks them, then exchanges the two at once. For a new or empty folder below a volume of the pod, the pod keeps running. For every other folder, the node stops the pod for some seconds and starts it again: its processes end, and the event of the restore has the member `restarted_pod`.',
        errors: {
          pod_not_found: 'the account has no such pod',
          pod_state_conflict: 'the state of the pod does not allow a restore',
          not_found: 'no backup has this id',
          forbidden: 'the backup belongs to another account',
          conflict: 'with `new_only`, the folder is not empty',
          BACKUP_STORAGE_BUSY:
            'a backup or restore of the pod is running; `detail.active_operation_id` names it',
          bad_request: 'the folder cannot be restored, or the backup has no data',
        },
        params: PodUuidParams,
        body: RestoreRequest,
        response: { 200: RestoreTriggered },
      },
    },
    async (request, reply) => {
      const podId = await podIdNamedBy(userOf(request).accountId, request.params.pod_uuid);
      const isTaken = await operations.isTargetTaken(callerOf(request), podId, request.body);
      let begunOn: string | null = null;
      const effects = async (tx: Db): Promise<RestoreTriggered> => {
        if (isTaken) throw targetTaken(request.body.restore_path);
        const begun = await operations.beginRestore(tx, callerOf(request), podId, request.body);
        begunOn = begun.executor_id;
        return { success: true, restore_log_id: begun.id };
      };
      await answerOnce(once, { request, reply }, { schema: RestoreTriggered, effects });
      if (begunOn !== null) wake(begunOn);
      return reply;
    },
  );
  api.get(
    '/pods/:pod_uuid/restore-logs',
    {
      config,
      schema: {
        tags,
        summary: 'List restores of a pod',
        description: 'Returns the restores of one pod, newest first.',
        errors: { pod_not_found: 'the account never had such a pod' },
        params: PodUuidParams,
        querystring: PageQuery,
        response: { 200: RestoreLogPage },
      },
    },
    async (request) => {
      const caller = userOf(request);
      const podId = await podIdNamedBy(caller.accountId, request.params.pod_uuid);
      return operations.listRestoresOf(caller, podId, request.query);
    },
  );
  api.post(
    '/restore-logs/:id/cancel',
    {
      config,
      schema: {
        tags,
        summary: 'Cancel a restore',
        description: 'Stops a running restore. With `replace` the old folder is unchanged.',
        errors: {
          bad_request: 'the restore has ended',
          not_found: 'no restore has this id',
          forbidden: 'the restore belongs to another account',
        },
        retry: 'Safe: a repeat is refused and changes nothing.',
        params: IdParams,
        response: { 200: RestoreLog },
      },
    },
    (request) => operations.cancelRestore(callerOf(request), request.params.id),
  );
}
