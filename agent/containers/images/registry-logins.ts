/** Registry logins of pods: sealed at rest, and compared by a keyed hash. */
import { createHmac } from 'node:crypto';
import { RegistryAuth } from '#shared/api/agent/images.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';
import { createSealing } from '#shared/signing/sealing.ts';

/** Context that a sealed login is bound to: its pod and generation. */
export const placeOfLogin = (podId: string, generation: number) =>
  `registry-auth ${podId} ${generation}`;

/** Scope of images that need no login. */
export const PUBLIC_SCOPE = '';

export type RegistryLogins = ReturnType<typeof createRegistryLogins>;

export function createRegistryLogins(deps: {
  store: RegistryAuthStore;
  /** 32-byte key of the agent. */
  secret: Uint8Array;
  random: Random;
  log: Log;
}) {
  const { store, secret, log } = deps;
  const sealing = createSealing({ key: secret, random: deps.random });

  return {
    /** Call inside the transaction that writes the pod's row. */
    keep(podId: string, generation: number, auth: RegistryAuth): void {
      const sealed = sealing.seal(JSON.stringify(auth), placeOfLogin(podId, generation));
      store.put(podId, generation, sealed);
    },
    /** Undefined if there is no login, or if it was sealed with another key. */
    of(podId: string, generation: number): RegistryAuth | undefined {
      const sealed = store.get(podId, generation);
      if (sealed === null) return undefined;
      try {
        return RegistryAuth.parse(
          JSON.parse(sealing.open(sealed, placeOfLogin(podId, generation))),
        );
      } catch (error) {
        log.warn({ pod_id: podId, detail: messageOf(error) }, 'registry login cannot be decrypted');
        return undefined;
      }
    },
    drop: (podId: string): void => store.drop(podId),
    /**
     * Returns the scope of a login: a keyed hash, equal for equal logins. Without the key, the hash is useless for
     * guessing passwords.
     */
    scopeOf(auth: RegistryAuth | undefined): string {
      if (auth === undefined) return PUBLIC_SCOPE;
      const { host, username, password } = auth;
      const text = JSON.stringify(['registry scope', host, username, password]);
      return createHmac('sha256', secret).update(text).digest('hex');
    },
  };
}

/** Number of generations whose logins are retained: a rollback may return to a generation several changes back. */
const GENERATIONS_KEPT = 8;

export type RegistryAuthStore = ReturnType<typeof createRegistryAuthStore>;

/** Queries on the table pod_registry_auth: sealed logins by pod and generation. Rows are deleted with their pod. */
export function createRegistryAuthStore(database: DatabaseSync) {
  const select = database.prepare(
    'SELECT sealed FROM pod_registry_auth WHERE pod_id = :pod_id AND generation = :generation',
  );
  const put = database.prepare(
    `INSERT INTO pod_registry_auth (pod_id, generation, sealed)
     VALUES (:pod_id, :generation, :sealed)
     ON CONFLICT (pod_id, generation) DO UPDATE SET sealed = excluded.sealed`,
  );
  const dropOld = database.prepare(
    `DELETE FROM pod_registry_auth WHERE pod_id = :pod_id AND generation NOT IN (
       SELECT generation FROM pod_registry_auth WHERE pod_id = :pod_id
       ORDER BY generation DESC LIMIT :keep)`,
  );
  const drop = database.prepare('DELETE FROM pod_registry_auth WHERE pod_id = :pod_id');

  return {
    get(podId: string, generation: number): string | null {
      const sealed = select.get({ pod_id: podId, generation })?.['sealed'];
      return typeof sealed === 'string' ? sealed : null;
    },
    put(podId: string, generation: number, sealed: string): void {
      put.run({ pod_id: podId, generation, sealed });
      dropOld.run({ pod_id: podId, keep: GENERATIONS_KEPT });
    },
    drop(podId: string): void {
      drop.run({ pod_id: podId });
    },
  };
}
