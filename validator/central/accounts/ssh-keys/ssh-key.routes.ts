/** Routes of SSH keys: /ssh-keys. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { userOf } from '../../platform/identity.ts';
import { IdParams } from '../../platform/wire.ts';
import { CreateSshKey, SshKey } from './ssh-key.schemas.ts';
import type { SshKeys } from './ssh-key.service.ts';

const tags = ['SSH keys'];
const config = { auth: 'user' } as const;

export function registerSshKeyRoutes(api: HttpServer, keys: SshKeys): void {
  api.get(
    '/ssh-keys',
    { config, schema: { tags, response: { 200: z.array(SshKey) } } },
    (request) => keys.list(userOf(request)),
  );
  api.post(
    '/ssh-keys',
    { config, schema: { tags, body: CreateSshKey, response: { 200: SshKey } } },
    (request) => keys.create(userOf(request), request.body),
  );
  api.get(
    '/ssh-keys/:id',
    { config, schema: { tags, params: IdParams, response: { 200: SshKey } } },
    (request) => keys.get(userOf(request), request.params.id),
  );
  api.put(
    '/ssh-keys/:id',
    { config, schema: { tags, params: IdParams, body: CreateSshKey, response: { 200: SshKey } } },
    (request) => keys.update(userOf(request), request.params.id, request.body),
  );
  api.delete(
    '/ssh-keys/:id',
    { config, schema: { tags, params: IdParams, response: { 200: SshKey } } },
    (request) => keys.remove(userOf(request), request.params.id),
  );
}
