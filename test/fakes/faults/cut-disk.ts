/**
 * A disk whose power can be cut at any moment: a file system on a loop device whose backing file contains what was
 * written out and nothing of the page cache. Needs root.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MIB = 1024 * 1024;

export type CutDisk = {
  folder: string;
  /** Returns what `look` finds at the same path on a machine that restarts after a power cut at this moment. */
  afterCut<T>(look: (folder: string) => T): T;
  close(): void;
};

/** Mounted so that only explicit syncs write data out. */
export function mountCutDisk(mib: number): CutDisk {
  const place = mkdtempSync(join(tmpdir(), 'podwright-cut-'));
  const [image, copy] = [join(place, 'disk'), join(place, 'disk-after')];
  const [folder, after] = [join(place, 'folder'), join(place, 'after')];
  for (const path of [folder, after]) mkdirSync(path);
  writeFileSync(image, '');
  truncateSync(image, mib * MIB);
  execFileSync('mkfs.ext4', ['-q', '-F', image]);
  // Disables the file system's commit timer and its special handling of renames.
  mount(image, folder, 'loop,commit=3600,noauto_da_alloc');
  return {
    folder,
    afterCut(look) {
      copyFileSync(image, copy);
      mount(copy, after, 'loop');
      try {
        return look(after);
      } finally {
        execFileSync('umount', [after]);
      }
    },
    close() {
      execFileSync('umount', ['--lazy', folder]);
      rmSync(place, { recursive: true });
    },
  };
}

function mount(image: string, folder: string, options: string): void {
  execFileSync('mount', ['-t', 'ext4', '-o', options, image, folder]);
}
