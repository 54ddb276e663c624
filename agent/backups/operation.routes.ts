/** Routes of backups, restores and drills. */
import { z } from 'zod';
import {
  BackupRequest,
  DrillRequest,
  OperationId,
  OperationList,
  OperationView,
  PodPath,
  RestoreRequest,
  TargetView,
} from '#shared/api/agent/operations.ts';
import { PodId } from '#shared/api/agent/pod.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { OperationService } from './operation.service.ts';

const ofPod = { params: z.object({ id: PodId }), response: { 200: OperationView } };
const ofOperation = { params: z.object({ id: OperationId }), response: { 200: OperationView } };
const ListQuery = z.object({ pod_id: PodId.optional() });

/** Registers the routes. The server's hooks check signatures and roles before the handlers run. */
export function registerOperationRoutes(server: HttpServer, operations: OperationService): void {
  server.post(
    '/v1/pods/:id/backups',
    { schema: { ...ofPod, body: BackupRequest } },
    async ({ params, body }) => operations.beginBackup(params.id, body),
  );
  server.post(
    '/v1/pods/:id/restores',
    { schema: { ...ofPod, body: RestoreRequest } },
    async ({ params, body }) => operations.beginRestore(params.id, body),
  );
  server.get(
    '/v1/pods/:id/restore-target',
    {
      schema: { ...ofPod, querystring: z.object({ path: PodPath }), response: { 200: TargetView } },
    },
    async ({ params, query }) => operations.restoreTarget(params.id, query.path),
  );
  server.post(
    '/v1/pods/:id/verifications',
    { schema: { ...ofPod, body: DrillRequest } },
    async ({ params, body }) => operations.beginVerify(params.id, body),
  );
  server.get(
    '/v1/operations',
    { schema: { querystring: ListQuery, response: { 200: OperationList } } },
    async ({ query }) => ({ operations: operations.list(query.pod_id) }),
  );
  server.get('/v1/operations/:id', { schema: ofOperation }, async ({ params }) =>
    operations.get(params.id),
  );
  server.post('/v1/operations/:id/cancel', { schema: ofOperation }, async ({ params }) =>
    operations.cancel(params.id),
  );
}
