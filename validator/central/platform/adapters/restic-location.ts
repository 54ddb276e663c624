/** Repositories of backups where the operator says: any location that restic knows, with the credentials it needs there. */
import { mkdir, rename, rm } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import type { BackupStorage } from '../ports.ts';

export type ResticLocationOptions = {
  /** A path, `sftp:…`, `s3:…`, `rest:…` and so on; the repository's id is added to it. */
  prefix: string;
  /** Variables of restic's back end: they reach every node that runs a backup, whatever its rights. */
  environment: Record<string, string>;
};

/** Beside the repositories, for what is being deleted. */
const REMOVED = 'removed';
const ID = /^[0-9a-f-]{36}$/;

/**
 * The back end has one set of credentials: rights cannot be told apart here, nor sizes known. Only a path can be
 * removed from here; elsewhere `remove` rejects, and the operator has to.
 */
export function createResticLocation({
  prefix,
  environment,
}: ResticLocationOptions): BackupStorage {
  const base = prefix.replace(/\/+$/, '');
  return {
    place: async ({ id }) => ({ location: `${base}/${id}`, environment: { ...environment } }),
    bytesOf: async () => null,
    async remove(id) {
      if (!isAbsolute(base) || !ID.test(id)) {
        throw new Error(`the backups in ${base}/${id} have to be removed by the operator`);
      }
      await mkdir(join(base, REMOVED), { recursive: true, mode: 0o700 });
      const away = join(base, REMOVED, id);
      // Of an earlier attempt that was cut off.
      await rm(away, { recursive: true, force: true });
      await rename(join(base, id), away).catch((error: unknown) => {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
      });
      await rm(away, { recursive: true, force: true });
    },
  };
}
