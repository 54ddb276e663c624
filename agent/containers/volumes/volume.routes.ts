/** HTTP routes of persistent volumes. Their backups and restores are operations like those of pods. */
import { z } from 'zod';
import { BackupRequest, OperationView, RestoreRequest } from '#shared/api/agent/operations.ts';
import { VolumeCopyId, VolumeList, VolumePut, VolumeView } from '#shared/api/agent/volumes.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { VolumeService } from './volume.service.ts';

/** Begins operations on a volume; both throw ApiError. */
type VolumeBackups = {
  beginBackup(id: string, request: BackupRequest): OperationView;
  beginRestore(id: string, request: RestoreRequest): OperationView;
};

const params = z.object({ id: VolumeCopyId });
const ofVolume = { params, response: { 200: VolumeView } };
const ofOperation = { params, response: { 200: OperationView } };

/** Registers the routes. The server's hooks check signatures and roles before the handlers run. */
export function registerVolumeRoutes(
  server: HttpServer,
  { volumes, operations }: { volumes: VolumeService; operations: VolumeBackups },
): void {
  server.get('/v1/volumes', { schema: { response: { 200: VolumeList } } }, async () => ({
    volumes: await volumes.list(),
  }));
  server.put('/v1/volumes/:id', { schema: { ...ofVolume, body: VolumePut } }, (request) =>
    volumes.put(request.params.id, request.body),
  );
  server.delete('/v1/volumes/:id', { schema: ofVolume }, (request) =>
    volumes.remove(request.params.id),
  );
  server.post(
    '/v1/volumes/:id/backups',
    { schema: { ...ofOperation, body: BackupRequest } },
    async ({ params: { id }, body }) => {
      volumes.checkFree(id, 'backup');
      return operations.beginBackup(id, body);
    },
  );
  server.post(
    '/v1/volumes/:id/restores',
    { schema: { ...ofOperation, body: RestoreRequest } },
    async ({ params: { id }, body }) => {
      volumes.checkFree(id, 'restore');
      return operations.beginRestore(id, body);
    },
  );
}
