/** Routes of logins for image registries: /docker-credentials. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { userOf } from '../../platform/identity.ts';
import { IdParams } from '../../platform/wire.ts';
import {
  CreateDockerCredential,
  DockerCredential,
  UpdateDockerCredential,
} from './docker-credential.schemas.ts';
import type { DockerCredentials } from './docker-credential.service.ts';

const tags = ['Docker credentials'];
const config = { auth: 'user' } as const;
const response = { 200: DockerCredential };

export function registerDockerCredentialRoutes(
  api: HttpServer,
  credentials: DockerCredentials,
): void {
  api.get(
    '/docker-credentials',
    { config, schema: { tags, response: { 200: z.array(DockerCredential) } } },
    (request) => credentials.list(userOf(request)),
  );
  api.post(
    '/docker-credentials',
    { config, schema: { tags, body: CreateDockerCredential, response } },
    (request) => credentials.create(userOf(request), request.body),
  );
  api.get(
    '/docker-credentials/:id',
    { config, schema: { tags, params: IdParams, response } },
    (request) => credentials.get(userOf(request), request.params.id),
  );
  api.put(
    '/docker-credentials/:id',
    { config, schema: { tags, params: IdParams, body: UpdateDockerCredential, response } },
    (request) => credentials.update(userOf(request), request.params.id, request.body),
  );
  api.delete(
    '/docker-credentials/:id',
    { config, schema: { tags, params: IdParams, response } },
    (request) => credentials.remove(userOf(request), request.params.id),
  );
}
