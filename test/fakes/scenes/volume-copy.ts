/** Copies of a volume on the real engine: where their data is, and requests to back up and restore them. */
import type { BackupRequestInput } from '#shared/api/agent/operations.ts';
import { volumeCopyName } from '../../../agent/containers/volumes/volume.service.ts';
import { mustRun } from '../agents/real-host.ts';

/** Returns the folder of the copy on this host. */
export async function folderOfCopy(id: string): Promise<string> {
  const name = volumeCopyName(id);
  return (await mustRun('docker', 'volume', 'inspect', '-f', '{{.Mountpoint}}', name)).trim();
}

export const copyBackup = (operation_id: string, repository: BackupRequestInput['repository']) => ({
  operation_id,
  path: '/mnt',
  repository,
  create_repository: true,
});

export const copyRestore = (
  operation_id: string,
  snapshot_id: string | null,
  repository: BackupRequestInput['repository'],
) => ({
  operation_id,
  snapshot_id: snapshot_id ?? '',
  repository,
  source_path: '/mnt',
  target_path: '/mnt',
});
