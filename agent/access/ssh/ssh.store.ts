/** Queries on the table pod_ssh: a pod's host key, and keys that were set after its spec. */
import { z } from 'zod';
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';

/** One row of `pod_ssh`. */
export const PodSshRow = z.object({
  pod_id: z.string(),
  host_key: z.string(),
  fingerprint: z.string(),
  keys_json: z.string(),
  keys_generation: z.int(),
});
export type PodSshRow = z.output<typeof PodSshRow>;

export type SshStore = ReturnType<typeof createSshStore>;

/** Prepares the queries. A foreign key ties each row to its pod's row. */
export function createSshStore(database: DatabaseSync) {
  const select = database.prepare('SELECT * FROM pod_ssh WHERE pod_id = :pod_id');
  const insert = database.prepare(
    `INSERT INTO pod_ssh (pod_id, host_key, fingerprint, keys_json, keys_generation)
     VALUES (:pod_id, :host_key, :fingerprint, '[]', 0)`,
  );
  const setKeys = database.prepare(
    `UPDATE pod_ssh SET keys_json = :keys_json, keys_generation = :keys_generation
     WHERE pod_id = :pod_id`,
  );

  return {
    get(podId: string): PodSshRow | null {
      const row = select.get({ pod_id: podId });
      return row === undefined ? null : PodSshRow.parse(row);
    },
    insert(row: Pick<PodSshRow, 'pod_id' | 'host_key' | 'fingerprint'>): void {
      insert.run(row);
    },
    setKeys(podId: string, generation: number, keys: readonly string[]): void {
      const keys_json = JSON.stringify(keys);
      setKeys.run({ pod_id: podId, keys_json, keys_generation: generation });
    },
  };
}
