/**
 * Secrets of accounts, sealed at rest. A rental copies the named secrets to its pod, so that a later change or deletion
 * does not affect running pods.
 */
import {
  MAX_POD_SECRETS,
  MAX_POD_SECRETS_CHARS,
  type PodSecret,
} from '#shared/api/agent/pod-secrets.ts';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { createSealing } from '#shared/signing/sealing.ts';
import type { AccountSecret, Database, Db } from '../../platform/database/tables.ts';
import type { UserIdentity } from '../../platform/identity.ts';
import { lockAccount } from '../auth/account-access.ts';
import { deriveKey } from '../auth/derived-key.ts';
import type { CreateSecret, SecretResponse } from './secret.schemas.ts';
import {
  deleteSecret,
  deleteSecretsOf,
  findSecret,
  insertPodSecrets,
  listPodSecrets,
  listSecrets,
  putSecret,
} from './secret.store.ts';

const MAX_PER_ACCOUNT = 100;

type SealingDeps = { random: Random; secret: Uint8Array };

export type Secrets = ReturnType<typeof createSecrets>;

/** `secret` is the deployment's secret; values can only be opened with it. */
export function createSecrets(deps: SealingDeps & { db: Database; clock: Clock }) {
  const { db, clock, random } = deps;
  const sealing = sealingOf(deps);

  return {
    async list({ accountId }: UserIdentity): Promise<SecretResponse[]> {
      return (await listSecrets(db, accountId)).map(toResponse);
    },

    /**
     * Stores a secret. If the name exists, replaces its value; only pods that are rented afterwards receive the new
     * value.
     */
    put(caller: UserIdentity, { name, value }: CreateSecret): Promise<SecretResponse> {
      const nowMs = clock.now();
      return db.transaction().execute(async (tx) => {
        await lockAccount(tx, caller);
        const present = await listSecrets(tx, caller.accountId);
        const known = present.find((row) => row.name === name);
        if (known === undefined && present.length >= MAX_PER_ACCOUNT) {
          throw new ApiError('bad_request', `An account has at most ${MAX_PER_ACCOUNT} secrets`, {
            hint: 'Delete a secret that is no longer used.',
          });
        }
        const id = known?.id ?? random.uuid();
        return toResponse(
          await putSecret(tx, {
            id,
            account_id: caller.accountId,
            name,
            value_sealed: sealing.seal(value, id),
            created_at: known?.created_at ?? nowMs,
            updated_at: nowMs,
          }),
        );
      });
    },

    /** Deletes a secret. Pods that were rented with it keep their copies. Throws `not_found`, `forbidden`. */
    remove(caller: UserIdentity, id: string): Promise<SecretResponse> {
      return db.transaction().execute(async (tx) => {
        const row = await findSecret(tx, id);
        if (row === undefined) throw new ApiError('not_found', 'Secret not found');
        if (row.account_id !== caller.accountId) {
          throw new ApiError('forbidden', 'This secret belongs to another account');
        }
        await deleteSecret(tx, id);
        return toResponse(row);
      });
    },
  };
}

/** Copies the named secrets of the pod's account to the new pod, and returns the names. */
export type AttachSecrets = (
  tx: Db,
  pod: { id: string; accountId: string },
  names: readonly string[],
) => Promise<void>;

/**
 * Creates the function that copies secrets to a pod. The function throws 400 `bad_request` for an unknown name and for
 * more secrets than a pod may have.
 */
export function createAttachSecrets(deps: SealingDeps): AttachSecrets {
  const sealing = sealingOf(deps);
  return async (tx, pod, names) => {
    if (names.length === 0) return;
    const own = await listSecrets(tx, pod.accountId);
    const chosen = names.map((name) => {
      const row = own.find((secret) => secret.name === name);
      if (row !== undefined) return { name, value: sealing.open(row.value_sealed, row.id) };
      throw new ApiError('bad_request', `secret_names: the account has no secret ${name}`, {
        hint: 'Create the secret with POST /secrets, or choose a name from GET /secrets.',
      });
    });
    if (JSON.stringify(chosen).length > MAX_POD_SECRETS_CHARS) {
      throw new ApiError('bad_request', 'secret_names: the values of one pod are limited', {
        hint: `Choose secrets with at most ${MAX_POD_SECRETS_CHARS} characters in all.`,
      });
    }
    const rows = chosen.map(({ name, value }) => ({
      pod_id: pod.id,
      name,
      value_sealed: sealing.seal(value, placeOf(pod.id, name)),
    }));
    await insertPodSecrets(tx, rows);
  };
}

/** Names without repetitions. Throws 400 `bad_request` for more names than a pod may have. */
export function secretNamesOf(names: readonly string[] | null | undefined): string[] {
  const distinct = [...new Set(names ?? [])].toSorted();
  if (distinct.length <= MAX_POD_SECRETS) return distinct;
  throw new ApiError('bad_request', `A pod has at most ${MAX_POD_SECRETS} secrets`, {
    hint: 'Put several values into one secret.',
  });
}

/** Returns a function that opens the secrets of a pod, for the request to its agent. */
export function createPodSecrets(deps: SealingDeps & { db: Database }) {
  const sealing = sealingOf(deps);
  return async (podId: string): Promise<PodSecret[]> =>
    (await listPodSecrets(deps.db, podId)).map(({ name, value_sealed }) => ({
      name,
      value: sealing.open(value_sealed, placeOf(podId, name)),
    }));
}

/** Deletes the secrets of an account that is being removed. */
export const deleteSecrets = deleteSecretsOf;

function sealingOf({ secret, random }: SealingDeps) {
  return createSealing({ key: deriveKey(secret, 'pod-secret-sealing'), random });
}

/** Associated data that binds a sealed copy to its pod and name. */
function placeOf(podId: string, name: string): string {
  return `${podId} ${name}`;
}

function toResponse({ id, name, created_at, updated_at }: AccountSecret): SecretResponse {
  return { id, name, created_at: naiveUtc(created_at), updated_at: naiveUtc(updated_at) };
}
