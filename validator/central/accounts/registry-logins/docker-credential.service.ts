/** Logins for image registries: an account's own, sealed at rest, used by its templates (contract 8). */

import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { createSealing, type Sealing } from '#shared/signing/sealing.ts';
import type { Database, Db, DockerCredential } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import { holdAccount } from '../auth/account-access.ts';
import { deriveKey } from '../auth/derived-key.ts';
import type {
  CreateDockerCredential,
  DockerCredentialResponse,
  UpdateDockerCredential,
} from './docker-credential.schemas.ts';
import {
  deleteDockerCredential,
  deleteDockerCredentialsOf,
  findDockerCredential,
  insertDockerCredential,
  listDockerCredentials,
  updateDockerCredential,
} from './docker-credential.store.ts';

const MAX_PER_ACCOUNT = 100;

export type DockerCredentials = ReturnType<typeof createDockerCredentials>;

/** `secret` is the deployment's; without it sealed passwords stay closed. */
export function createDockerCredentials(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  secret: Uint8Array;
}) {
  const { db, clock, random } = deps;
  const sealing = sealingOf(deps);

  async function own(handle: Db, caller: UserIdentity, id: string): Promise<DockerCredential> {
    const row = await findDockerCredential(handle, id);
    if (row === undefined) throw new ApiError('not_found', 'Docker credential not found');
    if (row.account_id !== caller.accountId) {
      throw new ApiError('forbidden', 'This Docker credential belongs to another account');
    }
    return row;
  }

  return {
    async list(caller: UserIdentity): Promise<DockerCredentialResponse[]> {
      return (await listDockerCredentials(db, caller.accountId)).map(toResponse);
    },

    async get(caller: UserIdentity, id: string): Promise<DockerCredentialResponse> {
      return toResponse(await own(db, caller, id));
    },

    create(caller: UserIdentity, body: CreateDockerCredential): Promise<DockerCredentialResponse> {
      const nowMs = clock.now();
      const id = random.uuid();
      const row: DockerCredential = {
        id,
        account_id: caller.accountId,
        name: body.name ?? '',
        docker_username: body.docker_username,
        password_sealed: sealing.seal(body.docker_password, id),
        created_at: nowMs,
        updated_at: nowMs,
      };
      return db.transaction().execute(async (tx) => {
        await holdAccount(tx, caller);
        if ((await listDockerCredentials(tx, caller.accountId)).length >= MAX_PER_ACCOUNT) {
          throw new ApiError(
            'bad_request',
            `An account has at most ${MAX_PER_ACCOUNT} Docker credentials`,
            { hint: 'Delete one that is no longer used.' },
          );
        }
        await insertDockerCredential(tx, row);
        return toResponse(row);
      });
    },

    /** Counts for launches from now on. */
    update(
      caller: UserIdentity,
      id: string,
      body: UpdateDockerCredential,
    ): Promise<DockerCredentialResponse> {
      return db.transaction().execute(async (tx) => {
        await lockRow(tx, 'accounts', caller.accountId);
        const row = await own(tx, caller, id);
        const { name, docker_username, docker_password: password } = body;
        const changes = {
          name: name ?? row.name,
          docker_username: docker_username ?? row.docker_username,
          password_sealed:
            password === undefined ? row.password_sealed : sealing.seal(password, id),
          updated_at: clock.now(),
        };
        await updateDockerCredential(tx, id, changes);
        return toResponse({ ...row, ...changes });
      });
    },

    /** Templates that name it cannot be rented any more until they name another. */
    remove(caller: UserIdentity, id: string): Promise<DockerCredentialResponse> {
      return db.transaction().execute(async (tx) => {
        const row = await own(tx, caller, id);
        await deleteDockerCredential(tx, id);
        return toResponse(row);
      });
    },
  };
}

/**
 * Throws `template_invalid` unless `id` is a credential of the account that the template belongs to: a copy
 * of somebody's template does not send that somebody's password to a registry of the copier's choice.
 */
export async function requireCredentialOf(
  db: Db,
  accountId: string | null,
  id: string | null,
): Promise<void> {
  if (id === null) return;
  const row = await findDockerCredential(db, id);
  if (row !== undefined && row.account_id === accountId) return;
  throw new ApiError('template_invalid', 'The template’s Docker credential does not exist', {
    hint: 'Set docker_credential_id to one of GET /docker-credentials.',
  });
}

/**
 * Opens the login of a credential, for the agent that pulls with it; null when it was deleted, or is not of
 * `accountId`: whoever runs the node sees the password, so it goes along with its owner's own pods only.
 */
export function createDockerLogins(deps: { db: Database; random: Random; secret: Uint8Array }) {
  const sealing = sealingOf(deps);
  return async (
    id: string,
    accountId: string,
  ): Promise<{ username: string; password: string } | null> => {
    const row = await findDockerCredential(deps.db, id);
    if (row === undefined || row.account_id !== accountId) return null;
    return { username: row.docker_username, password: sealing.open(row.password_sealed, id) };
  };
}

function sealingOf({ secret, random }: { secret: Uint8Array; random: Random }): Sealing {
  return createSealing({ key: deriveKey(secret, 'docker-credential-sealing'), random });
}

function toResponse(row: DockerCredential): DockerCredentialResponse {
  return {
    id: row.id,
    name: row.name === '' ? null : row.name,
    docker_username: row.docker_username,
    created_at: naiveUtc(row.created_at),
    updated_at: naiveUtc(row.updated_at),
  };
}

/** Removes those of an account that is being deleted. */
export function forgetDockerCredentials(tx: Db, accountId: string): Promise<void> {
  return deleteDockerCredentialsOf(tx, accountId);
}
