/** Routes of backup schedules. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import type { Db } from '../platform/database/tables.ts';
import { answerOnce, type OnceDeps } from '../platform/idempotency/once.ts';
import { userOf } from '../platform/identity.ts';
import { IdParams } from '../platform/wire.ts';
import {
  BACKUP_CONFIG_FIELD_NAMES,
  BackupConfig,
  BackupConfigCreate,
  PodIdParams,
} from './backup.schemas.ts';
import type { Schedules } from './schedule.service.ts';

const tags = ['Backups'];
const config = { auth: 'user' } as const;

export type ScheduleRoutesDeps = OnceDeps & {
  schedules: Schedules;
  /** Returns the pod's id. `id` is the id of the pod, or of the pod's node (`pod_executor_id`). */
  podIdNamedBy(accountId: string, id: string): Promise<string>;
};

export function registerScheduleRoutes(api: HttpServer, deps: ScheduleRoutesDeps): void {
  const { schedules, podIdNamedBy, ...once } = deps;
  api.get(
    '/backup-configs',
    {
      config,
      schema: {
        tags,
        summary: 'List backup schedules',
        description: "Returns the account's schedules.",
        response: { 200: z.array(BackupConfig) },
      },
    },
    (request) => schedules.list(userOf(request)),
  );
  api.post(
    '/backup-configs',
    {
      config: { ...config, once: 'backup-config', fieldNames: BACKUP_CONFIG_FIELD_NAMES },
      schema: {
        tags,
        summary: 'Create or change the backup schedule of a pod',
        description:
          'Stores the schedule of a pod; a pod has at most one schedule, which a repeated request replaces.',
        errors: {
          pod_not_found: 'the account has no such pod',
          pod_state_conflict: 'the pod is being deleted',
          bad_request:
            'the folder cannot be backed up, or this marketplace has no storage for backups',
        },
        body: BackupConfigCreate,
        response: { 200: BackupConfig },
      },
    },
    async (request, reply) => {
      const effects = (tx: Db) => schedules.put(tx, userOf(request), request.body);
      await answerOnce(once, { request, reply }, { schema: BackupConfig, effects });
      return reply;
    },
  );
  api.get(
    '/backup-configs/pod/:pod_id',
    {
      config,
      schema: {
        tags,
        summary: 'Read the backup schedule of a pod',
        description: 'Returns the schedule, or null if the pod has none.',
        errors: { pod_not_found: 'the account has no such pod' },
        params: PodIdParams,
        response: { 200: BackupConfig.nullable() },
      },
    },
    async (request, reply) => {
      const caller = userOf(request);
      const podId = await podIdNamedBy(caller.accountId, request.params.pod_id);
      const row = await schedules.ofPod(caller, podId);
      // By default the framework sends an empty body for null.
      return row ?? reply.type('application/json; charset=utf-8').serializer(String).send(row);
    },
  );
  api.delete(
    '/backup-configs/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Delete a backup schedule',
        description: 'Stops scheduled backups. Existing backups are kept until they expire.',
        errors: {
          not_found: 'no schedule has this id',
          forbidden: 'the schedule belongs to another account',
        },
        retry: 'Safe: a repeat returns 404 and changes nothing.',
        params: IdParams,
        response: { 200: BackupConfig },
      },
    },
    (request) => schedules.remove(userOf(request), request.params.id),
  );
}
