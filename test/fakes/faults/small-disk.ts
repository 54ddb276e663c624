/** A disk of a few MiB that tests may fill. Needs root. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MIB = 1024 * 1024;

export type SmallDisk = { folder: string; close(): void };

export function mountSmallDisk(mib: number): SmallDisk {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-disk-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mib}m`, 'podwright-disk', folder]);
  return {
    folder,
    close() {
      execFileSync('umount', ['--lazy', folder]);
      rmSync(folder, { recursive: true });
    },
  };
}

/** Writes one file that leaves `leftMib` free; `empty` deletes the file. */
export function fill(folder: string, leftMib = 0): { empty(): void } {
  const { bavail, bsize } = statfsSync(folder);
  const path = join(folder, 'filler');
  writeFileSync(path, Buffer.alloc(bavail * bsize - leftMib * MIB));
  return { empty: () => rmSync(path) };
}
