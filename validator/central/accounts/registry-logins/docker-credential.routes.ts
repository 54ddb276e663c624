/** Routes of logins for image registries: /docker-credentials. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import type { Db } from '../../platform/database/tables.ts';
import { answerOnce, type OnceDeps } from '../../platform/idempotency/once.ts';
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
  deps: OnceDeps & { credentials: DockerCredentials },
): void {
  const { credentials } = deps;
  api.get(
    '/docker-credentials',
    {
      config,
      schema: {
        tags,
        summary: 'List logins for image registries',
        description: "Returns the account's logins, without their passwords.",
        response: { 200: z.array(DockerCredential) },
      },
    },
    (request) => credentials.list(userOf(request)),
  );
  api.post(
    '/docker-credentials',
    {
      config: { ...config, once: 'docker-credential' },
      schema: {
        tags,
        summary: 'Add a login for an image registry',
        description:
          'Stores a user name and a password for private images. A template names the login in `docker_credential_id`; the node receives the login when it pulls the image.',
        errors: { bad_request: 'the account has 100 logins' },
        body: CreateDockerCredential,
        response,
      },
    },
    async (request, reply) => {
      const effects = (tx: Db) => credentials.createIn(tx, userOf(request), request.body);
      await answerOnce(deps, { request, reply }, { schema: DockerCredential, effects });
      return reply;
    },
  );
  api.get(
    '/docker-credentials/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Read a login',
        description: 'Returns one login of the account, without its password.',
        errors: {
          not_found: 'no login has this id',
          forbidden: 'the login belongs to another account',
        },
        params: IdParams,
        response,
      },
    },
    (request) => credentials.get(userOf(request), request.params.id),
  );
  api.put(
    '/docker-credentials/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Change a login',
        description:
          'Changes the given members. Later pulls use the new values; running pods are unaffected.',
        errors: {
          not_found: 'no login has this id',
          forbidden: 'the login belongs to another account',
        },
        retry: 'Safe: a repeat stores the same values again.',
        params: IdParams,
        body: UpdateDockerCredential,
        response,
      },
    },
    (request) => credentials.update(userOf(request), request.params.id, request.body),
  );
  api.delete(
    '/docker-credentials/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Delete a login',
        description:
          'Deletes the login and returns its last state. Templates that name it cannot be rented until they name another login.',
        errors: {
          not_found: 'no login has this id',
          forbidden: 'the login belongs to another account',
        },
        retry: 'Safe: a repeat returns 404 and changes nothing.',
        params: IdParams,
        response,
      },
    },
    (request) => credentials.remove(userOf(request), request.params.id),
  );
}
