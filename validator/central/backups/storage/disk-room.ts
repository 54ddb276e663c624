/** Backups leave the disk room for what else lives on it. */
import { statfs } from 'node:fs/promises';
import { ResticRefusal } from './restic-refusal.ts';

export type Space = { freeBytes: number; totalBytes: number };

/** Of the file system that `folder` lies on. */
export async function spaceAt(folder: string): Promise<Space> {
  const { bavail, blocks, bsize } = await statfs(folder);
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize };
}

/** Kept free: the larger of the two. */
const RESERVE_SHARE = 0.05;
const RESERVE_BYTES = 1024 ** 3;

export type DiskRoom = ReturnType<typeof createDiskRoom>;

/** `spaceOf` is asked anew each time. */
export function createDiskRoom(spaceOf: () => Promise<Space>) {
  return {
    /** Throws 507 when so many bytes more would leave less than the reserve. */
    async requireFor(bytes: number): Promise<void> {
      const { freeBytes, totalBytes } = await spaceOf();
      if (freeBytes - bytes >= Math.max(RESERVE_BYTES, totalBytes * RESERVE_SHARE)) return;
      throw diskFull();
    },
  };
}

export function diskFull(): ResticRefusal {
  return new ResticRefusal(507, 'The disk for backups is full');
}
