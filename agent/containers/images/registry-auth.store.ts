/** All queries on the table pod_registry_auth: sealed logins of pods, by generation. */
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';

/** A generation that failed goes back to the one that ran, which may lie several changes behind. */
const GENERATIONS_KEPT = 8;

export type RegistryAuthStore = ReturnType<typeof createRegistryAuthStore>;

/** A row can be there only with its pod's, and goes with it. */
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
