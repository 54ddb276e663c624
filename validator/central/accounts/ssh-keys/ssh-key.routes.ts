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
    {
      config,
      schema: {
        tags,
        summary: "List the account's SSH keys",
        description:
          'Returns every SSH key of the account. A rental without `user_public_key` installs all of them in the pod.',
        response: { 200: z.array(SshKey) },
      },
    },
    (request) => keys.list(userOf(request)),
  );
  api.post(
    '/ssh-keys',
    {
      config,
      schema: {
        tags,
        summary: 'Add an SSH key',
        description:
          'Stores a public key. If the account already has the key, the existing row is returned with its name unchanged. Running pods do not change: add the key to a pod with `POST /pods/{id}/multiple-ssh-keys`.',
        errors: { conflict: 'another request adds the same key at this moment' },
        retry: 'Safe: the same public key returns the same row.',
        body: CreateSshKey,
        response: { 200: SshKey },
      },
    },
    (request) => keys.create(userOf(request), request.body),
  );
  api.get(
    '/ssh-keys/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Read an SSH key',
        description: 'Returns one SSH key of the account.',
        errors: {
          not_found: 'no key has this id',
          forbidden: 'the key belongs to another account',
        },
        params: IdParams,
        response: { 200: SshKey },
      },
    },
    (request) => keys.get(userOf(request), request.params.id),
  );
  api.put(
    '/ssh-keys/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Replace an SSH key',
        description: 'Replaces the name and the public key. Running pods retain the old key.',
        errors: {
          not_found: 'no key has this id',
          forbidden: 'the key belongs to another account',
          conflict: 'the account has this public key under another id',
        },
        retry: 'Safe: a repeat stores the same values again.',
        params: IdParams,
        body: CreateSshKey,
        response: { 200: SshKey },
      },
    },
    (request) => keys.update(userOf(request), request.params.id, request.body),
  );
  api.delete(
    '/ssh-keys/:id',
    {
      config,
      schema: {
        tags,
        summary: 'Delete an SSH key',
        description:
          'Deletes the key from the account and returns its last state. Running pods retain the key.',
        errors: {
          not_found: 'no key has this id, for example after an earlier request deleted it',
          forbidden: 'the key belongs to another account',
        },
        retry: 'Safe: a repeat returns 404 and changes nothing.',
        params: IdParams,
        response: { 200: SshKey },
      },
    },
    (request) => keys.remove(userOf(request), request.params.id),
  );
}
