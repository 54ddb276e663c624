/** /volumes. Errors are flat objects, except those of current-stats and release. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import type { Db } from '../../platform/database/tables.ts';
import { answerOnce, type OnceDeps } from '../../platform/idempotency/once.ts';
import { callerOf, userOf } from '../../platform/identity.ts';
import { IdParams } from '../../platform/wire.ts';
import { Volume, VolumeParams, VolumeRequest, VolumeStats } from './volume.schemas.ts';
import type { Volumes } from './volume.service.ts';

const tags = ['Volumes'];
const config = { auth: 'user' } as const;
const response = { 200: Volume };

export function registerVolumeRoutes(
  api: HttpServer,
  { volumes, ...once }: OnceDeps & { volumes: Volumes },
): void {
  api.get('/volumes', { config, schema: { tags, response: { 200: z.array(Volume) } } }, (request) =>
    volumes.list(userOf(request)),
  );
  api.post(
    '/volumes',
    { config: { ...config, once: 'volume' }, schema: { tags, body: VolumeRequest, response } },
    async (request, reply) => {
      const effects = (tx: Db) => volumes.createIn(tx, userOf(request), request.body);
      await answerOnce(once, { request, reply }, { schema: Volume, effects });
      return reply;
    },
  );
  api.get('/volumes/:id', { config, schema: { tags, params: IdParams, response } }, (request) =>
    volumes.get(userOf(request), request.params.id),
  );
  api.put(
    '/volumes/:id',
    { config, schema: { tags, params: IdParams, body: VolumeRequest, response } },
    (request) => volumes.update(userOf(request), request.params.id, request.body),
  );
  api.delete('/volumes/:id', { config, schema: { tags, params: IdParams, response } }, (request) =>
    volumes.remove(userOf(request), request.params.id),
  );
  api.get(
    '/volumes/:volume_id/current-stats',
    { config, schema: { tags, params: VolumeParams, response: { 200: VolumeStats } } },
    (request) => volumes.stats(userOf(request), request.params.volume_id),
  );
  api.post(
    '/volumes/:id/release',
    { config, schema: { tags, params: IdParams, response } },
    (request) => volumes.release(callerOf(request), request.params.id),
  );
}
