/**
 * /volumes. Error bodies have the older flat form instead of `{error: …}`, except those of current-stats and release.
 */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import type { Db } from '../../platform/database/tables.ts';
import { answerOnce, type OnceDeps } from '../../platform/idempotency/once.ts';
import { callerOf, userOf } from '../../platform/identity.ts';
import { IdParams } from '../../platform/wire.ts';
import {
  Volume,
  VolumeParams,
  VolumeRequest,
  VolumeStats,
  VolumeUpdate,
} from './volume.schemas.ts';
import type { Volumes } from './volume.service.ts';

const tags = ['Volumes'];
const config = { auth: 'user' } as const;
const response = { 200: Volume };

export function registerVolumeRoutes(
  api: HttpServer,
  { volumes, ...once }: OnceDeps & { volumes: Volumes },
): void {
  api.get(
    '/volumes',
    {
      config,
      schema: {
        tags,
        summary: 'List volumes',
        description:
          "Returns the account's volumes with their sizes and the location of their newest data.",
        response: { 200: z.array(Volume) },
      },
    },
    (request) => volumes.list(userOf(request)),
  );
  api.post(
    '/volumes',
    {
      config: { ...config, once: 'volume' },
      schema: {
        tags,
        summary: 'Create a volume',
        description:
          'Creates an empty volume. A rental attaches the volume with `volume_id`. The volume is mounted at `/mnt`, moves with rentals from node to node, and is saved when its pod ends.',
        errors: {
          bad_request:
            'the account has too many volumes, or this marketplace has no storage for volumes',
        },
        body: VolumeRequest,
        response,
      },
    },
    async (request, reply) => {
      const effects = (tx: Db) => volumes.createIn(tx, userOf(request), request.body);
      await answerOnce(once, { request, reply }, { schema: Volume, effects });
      return reply;
    },
  );
  api.get(
    '/volumes/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Read a volume',
        description: 'Returns one volume of the account.',
        errors: {
          forbidden: 'the volume belongs to another account',
          volume_not_found: 'no volume has this id',
        },
        params: IdParams,
        response,
      },
    },
    (request) => volumes.get(userOf(request), request.params.id),
  );
  api.put(
    '/volumes/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Rename or describe a volume',
        description: 'Changes the name, the description or both. The data is unaffected.',
        errors: {
          bad_request: 'the request has neither name nor description',
          forbidden: 'the volume belongs to another account',
          volume_not_found: 'no volume has this id',
        },
        retry: 'Safe: a repeat stores the same values again.',
        params: IdParams,
        body: VolumeUpdate,
        response,
      },
    },
    (request) => volumes.update(userOf(request), request.params.id, request.body),
  );
  api.delete(
    '/volumes/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Delete a volume',
        description:
          'Deletes the volume with its data and returns the last state of the volume. The data cannot be recovered.',
        errors: {
          bad_request: 'a pod uses the volume',
          forbidden: 'the volume belongs to another account',
          volume_not_found: 'no volume has this id',
        },
        retry: 'Safe: a repeat returns 404 and changes nothing.',
        params: IdParams,
        response,
      },
    },
    (request) => volumes.remove(userOf(request), request.params.id),
  );
  api.get(
    '/volumes/:volume_id/current-stats',
    {
      config,
      schema: {
        tags,
        summary: 'Read the size of a volume',
        description: 'Returns the last measurement.',
        errors: {
          forbidden: 'the volume belongs to another account',
          volume_not_found: 'no volume has this id',
        },
        params: VolumeParams,
        response: { 200: VolumeStats },
      },
    },
    (request) => volumes.stats(userOf(request), request.params.volume_id),
  );
  api.post(
    '/volumes/:id/release',
    {
      config,
      schema: {
        tags,
        summary: 'Discard unsaved data of a volume',
        description:
          'Discards data that exists only on a node that does not answer. The volume can then be used again with the data that was saved last.',
        errors: {
          bad_request: 'a pod uses the volume, or no node has unsaved data of the volume',
          forbidden: 'the volume belongs to another account',
          volume_not_found: 'no volume has this id',
        },
        retry: 'Safe: a repeat is refused, because nothing is unsaved.',
        params: IdParams,
        response,
      },
    },
    (request) => volumes.release(callerOf(request), request.params.id),
  );
}
