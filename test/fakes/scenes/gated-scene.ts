/**
 * One pod whose backups are stored by a backup server in this process. restic reaches the server through a proxy (the
 * storage gate), with which tests delay or interrupt requests. Tests also set the free space that the server reads.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemRandom } from '#shared/runtime/random.ts';
import { makeRepository } from '../../../validator/central/backups/storage/repository-folder.ts';
import { startBackupServer } from '../external/backup-server.ts';
import { writeQuickRepository } from '../external/quick-repository.ts';
import { startStorageGate } from '../faults/storage-gate.ts';
import { createBackupScene, PASSWORD, type SceneOptions } from './backup-scene.ts';

const TIB = 1024 ** 4;

export type GatedScene = Awaited<ReturnType<typeof startGatedScene>>;

/**
 * Starts the scene. By default the repository is initialised, with a cheap key derivation. With `isQuick: false` its
 * folders are empty, because restic has not initialised it.
 */
export async function startGatedScene(
  options: SceneOptions & { isQuick?: boolean; password?: string } = {},
) {
  const { isQuick = true, password = PASSWORD } = options;
  const root = mkdtempSync(join(tmpdir(), 'podwright-storage-'));
  const disk = { freeBytes: TIB, totalBytes: TIB };
  const server = await startBackupServer({ folder: root, spaceOf: async () => ({ ...disk }) });
  const ids = { id: systemRandom.uuid(), accountId: systemRandom.uuid() };
  const place = await server.storage.place(ids, 'append');
  const { port } = new URL(place.location.slice('rest:'.length));
  const gate = await startStorageGate(() => Number(port));
  const location = join(root, ids.id);
  await makeRepository(location, ids.accountId);
  if (isQuick) writeQuickRepository(location, password);
  const repository = { ...place, location: `${gate.origin}${ids.id}/`, password };
  const scene = createBackupScene({ made: false, location, repository, ...options });
  return {
    scene,
    gate,
    /** Location of the repository that bypasses the gate. */
    direct: { ...place, password },
    /** Disk size and free space that the storage reads. */
    disk,
    async close(): Promise<void> {
      scene.close();
      await gate.close();
      await server.close();
      rmSync(root, { recursive: true });
    },
  };
}
