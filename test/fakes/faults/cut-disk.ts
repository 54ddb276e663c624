/**
 * A disk whose power can be cut at any moment: a file system on a loop device, whose backing file has what was written out and
 * nothing of the page cache. Needs root.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MIB = 1024 * 1024;

export type CutDisk = {
  folder: string;
  /** What `look` finds at the same place of a machine that comes back after a power cut at this moment. */
  afterCut<T>(look: (folder: string) => T): T;
  close(): void;
};

/** Mounted so that nothing is written out but what is asked for. */
export function mountCutDisk(mib: number): CutDisk {
  const place = mkdtempSync(join(tmpdir(), 'podwright-cut-'));
  const [image, copy] = [join(place, 'disk'), join(place, 'disk-after')];
  const [folder, after] = [join(place, 'folder'), join(place, 'after')];
  for (const path of [folder, after]) mkdirSync(path);
  writeFileSync(image, '');
  truncateSync(image, mib * MIB);
  execFileSync('mkfs.ext4', ['-q', '-F', image]);
  // No timer of the file system's, and no guess at what a rename was meant for.
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
