/** Secrets of pods: sealed in the store, and files in a memory file system that the containers mount. */
import { type PodSecret, SECRETS_MOUNT_POINT } from '#shared/api/agent/pod-secrets.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';
import { createSealing } from '#shared/signing/sealing.ts';
import type { SecretFiles, SecretOwner } from './secret-files.ts';

/** Context that a sealed value is bound to. */
export const placeOfSecret = (podId: string, name: string) => `pod-secret ${podId} ${name}`;

export type PodSecretsService = ReturnType<typeof createPodSecrets>;

export function createPodSecrets(deps: {
  database: DatabaseSync;
  files: SecretFiles;
  /** 32-byte key of the agent. */
  secret: Uint8Array;
  random: Random;
}) {
  const { files, random } = deps;
  const store = createPodSecretStore(deps.database);
  const sealing = createSealing({ key: deps.secret, random });

  /** Throws if a value is missing, or was sealed with another key. */
  function valuesOf(podId: string, names: readonly string[]): PodSecret[] {
    const sealed = new Map(store.list(podId).map((row) => [row.name, row.sealed]));
    return names.map((name) => {
      const value = sealed.get(name);
      if (value === undefined) throw new Error(`the value of the secret ${name} is missing`);
      const text: unknown = JSON.parse(sealing.open(value, placeOfSecret(podId, name)));
      return { name, value: String(text) };
    });
  }

  return {
    /**
     * Throws `spec_refused` if the host cannot hold secrets, or if a name has no value in `secrets` and none stored.
     */
    check(podId: string, names: readonly string[], secrets: readonly PodSecret[]): void {
      if (names.length === 0) return;
      const problem = files.problem();
      if (problem !== null) throw refused(`this host cannot hold secrets: ${problem}`);
      const known = new Set([...secrets, ...store.list(podId)].map(({ name }) => name));
      const missing = names.find((name) => !known.has(name));
      if (missing !== undefined) throw refused(`the value of ${missing} is missing`);
    },

    /** Call inside the transaction that writes the pod's row. Stored values of other names are retained. */
    keep(podId: string, secrets: readonly PodSecret[]): void {
      for (const { name, value } of secrets) {
        store.put(podId, name, sealing.seal(JSON.stringify(value), placeOfSecret(podId, name)));
      }
    },

    /** Writes the files of a pod and returns their mounts; none without names. Call it before each start. */
    mounts(
      podId: string,
      names: readonly string[],
      owner: SecretOwner,
    ): { source: string; target: string }[] {
      if (names.length === 0) return [];
      const source = files.write(podId, valuesOf(podId, names), owner);
      return [{ source, target: SECRETS_MOUNT_POINT }];
    },

    /** Deletes the stored values of a pod that is being removed. */
    drop: (podId: string): void => store.drop(podId),

    /** Removes the files of a pod that has no containers any more. */
    removeFiles: (podId: string): void => files.remove(podId),

    /** Removes the files of pods that the store does not contain. */
    retain: (podIds: ReadonlySet<string>): void => files.retain(podIds),
  };
}

function refused(message: string): ApiError {
  const field = 'secrets';
  return new ApiError('spec_refused', `${field} is refused: ${message}`, { details: { field } });
}

/**
 * The user and group that a container of the image runs as. A user that is only a name counts as root, because it is
 * defined inside the image.
 */
export function ownerFor(imageUser: string): SecretOwner {
  const [, uid = '0', gid = '0'] = /^(\d{1,9})(?::(\d{1,9}))?$/.exec(imageUser) ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

/** Queries on the table pod_secrets. Rows are deleted with their pod. */
function createPodSecretStore(database: DatabaseSync) {
  const select = database.prepare(
    'SELECT name, sealed FROM pod_secrets WHERE pod_id = :pod_id ORDER BY name',
  );
  const put = database.prepare(
    `INSERT INTO pod_secrets (pod_id, name, sealed) VALUES (:pod_id, :name, :sealed)
     ON CONFLICT (pod_id, name) DO UPDATE SET sealed = excluded.sealed`,
  );
  const drop = database.prepare('DELETE FROM pod_secrets WHERE pod_id = :pod_id');

  return {
    list: (podId: string): { name: string; sealed: string }[] =>
      select.all({ pod_id: podId }).map((row) => ({
        name: String(row['name']),
        sealed: String(row['sealed']),
      })),
    put(podId: string, name: string, sealed: string): void {
      put.run({ pod_id: podId, name, sealed });
    },
    drop(podId: string): void {
      drop.run({ pod_id: podId });
    },
  };
}
