/** Queries on the table volumes: copies of persistent volumes on this host. */
import type { DatabaseSync } from '#shared/runtime/sqlite.ts';

export type VolumeCopyRow = {
  id: string;
  volume_id: string;
  size_bytes: number;
  removing: boolean;
};

export type VolumeStore = ReturnType<typeof createVolumeStore>;

export function createVolumeStore(database: DatabaseSync) {
  const select = database.prepare('SELECT * FROM volumes WHERE id = :id');
  const all = database.prepare('SELECT * FROM volumes ORDER BY id');
  const write = database.prepare(
    `INSERT INTO volumes (id, volume_id, size_bytes, removing)
     VALUES (:id, :volume_id, :size_bytes, :removing)
     ON CONFLICT (id) DO UPDATE SET volume_id = excluded.volume_id,
       size_bytes = excluded.size_bytes, removing = excluded.removing`,
  );
  const drop = database.prepare('DELETE FROM volumes WHERE id = :id');

  return {
    get(id: string): VolumeCopyRow | null {
      const row = select.get({ id });
      return row === undefined ? null : rowOf(row);
    },
    list: (): VolumeCopyRow[] => all.all().map(rowOf),
    put: (row: VolumeCopyRow): void => void write.run({ ...row, removing: row.removing ? 1 : 0 }),
    remove: (id: string): void => void drop.run({ id }),
  };
}

function rowOf(columns: Record<string, unknown>): VolumeCopyRow {
  return {
    id: String(columns['id']),
    volume_id: String(columns['volume_id']),
    size_bytes: Number(columns['size_bytes']),
    removing: columns['removing'] === 1,
  };
}
