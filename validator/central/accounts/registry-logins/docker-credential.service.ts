/** Logins for image registries: owned by an account, sealed at rest, used by the account's templates. */
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { createSealing, type Sealing } from '#shared/signing/sealing.ts';
import type { Database, Db, DockerCredential } from '../../platform/database/tables.ts';
import { lockRow } from '../../platform/database/transactions.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import { lockAccount } from '../auth/account-access.ts';
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

/** `secret` is the deployment's secret; sealed passwords can only be opened with it. */
export function createDockerCredentials(deps: {
  db: Database;
  clock: Clock;
  random: Random;
  secret: Uint8Array;
}) {
  const { db, clock, random } = deps;
  const sealing = sealingOf(deps);

  async function requireOwn(
    handle: Db,
    caller: UserIdentity,
    id: string,
  ): Promise<DockerCredential> {
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
      return toResponse(await requireOwn(db, caller, id));
    },

    /** Adds a login in `tx`. Throws `bad_request` above the limit. */
    async createIn(
      tx: Db,
      caller: UserIdentity,
      body: CreateDockerCredential,
    ): Promise<DockerCredentialResponse> {
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
      await lockAccount(tx, caller);
      if ((await listDockerCredentials(tx, caller.accountId)).length >= MAX_PER_ACCOUNT) {
        throw new ApiError(
          'bad_request',
          `An account has at most ${MAX_PER_ACCOUNT} Docker credentials`,
          { hint: 'Delete a credential that is no longer used.' },
        );
      }
      await insertDockerCredential(tx, row);
      return toResponse(row);
    },

    /** Updates a login. The change affects pods that are launched afterwards. */
    update(
      caller: UserIdentity,
      id: string,
      body: UpdateDockerCredential,
    ): Promise<DockerCredentialResponse> {
      return db.transaction().execute(async (tx) => {
        await lockRow(tx, 'accounts', caller.accountId);
        const row = await requireOwn(tx, caller, id);
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

    /** Deletes a login. Templates that use it cannot be rented until they use another login. */
    remove(caller: UserIdentity, id: string): Promise<DockerCredentialResponse> {
      return db.transaction().execute(async (tx) => {
        const row = await requireOwn(tx, caller, id);
        await deleteDockerCredential(tx, id);
        return toResponse(row);
      });
    },
  };
}

/**
 * Throws `template_invalid` unless `id` is null or the owner of the template owns the credential. Otherwise a copy of a
 * template could send its author's password to a registry that another account chose.
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
 * Returns the function that opens a credential for the agent that pulls an image. The function returns null if the
 * credential was deleted or does not belong to `accountId`: the node's operator can read the password, so it is sent
 * only with pods of its owner.
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

/** Deletes the credentials of an account that is being removed. */
export function deleteDockerCredentials(tx: Db, accountId: string): Promise<void> {
  return deleteDockerCredentialsOf(tx, accountId);
}
