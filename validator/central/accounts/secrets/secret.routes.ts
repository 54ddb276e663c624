/** Routes of secrets: /secrets. No route returns a value. */
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { userOf } from '../../platform/identity.ts';
import { IdParams } from '../../platform/wire.ts';
import { CreateSecret, Secret } from './secret.schemas.ts';
import type { Secrets } from './secret.service.ts';

const tags = ['Secrets'];
const config = { auth: 'user' } as const;
/** Maximum size of a body: JSON may encode every byte of a value as six characters. */
const BODY_LIMIT_BYTES = 512 * 1024;

export function registerSecretRoutes(api: HttpServer, secrets: Secrets): void {
  api.get(
    '/secrets',
    {
      config,
      schema: {
        tags,
        summary: "List the account's secrets",
        description: "Returns the names of the account's secrets, without their values.",
        response: { 200: z.array(Secret) },
      },
    },
    (request) => secrets.list(userOf(request)),
  );
  api.post(
    '/secrets',
    {
      config,
      bodyLimit: BODY_LIMIT_BYTES,
      schema: {
        tags,
        summary: 'Set a secret',
        description:
          'Stores a value under a name, encrypted. If the name exists, its value is replaced. The pod of a rental that names the secret in `secret_names` gets the value as a file `/run/secrets/<name>`; existing pods keep the value that they have. An account has at most 100 secrets.',
        errors: { bad_request: 'the account has 100 secrets' },
        retry: 'Safe: a repeat stores the same value again.',
        body: CreateSecret,
        response: { 200: Secret },
      },
    },
    (request) => secrets.put(userOf(request), request.body),
  );
  api.delete(
    '/secrets/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Delete a secret',
        description: 'Deletes a secret. Pods that were rented with it keep their files.',
        errors: {
          not_found: 'no secret has this id',
          forbidden: 'the secret belongs to another account',
        },
        retry: 'Safe: a repeat gets 404 `not_found`.',
        params: IdParams,
        response: { 200: Secret },
      },
    },
    (request) => secrets.remove(userOf(request), request.params.id),
  );
}
