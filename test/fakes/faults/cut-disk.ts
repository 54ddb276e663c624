/**
 * A disk whose power a test can cut at any moment: a file system on a loop device. Its backing file contains what was
 * written to the device, and nothing from the page cache. Needs root.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MIB = 1024 * 1024;

export type CutDisk = {
  folder: string;
  /** Returns what `look` reads at the same path after a power cut at this moment and a restart of the machine. */
  afterCut<T>(look: (folder: string) => T): T;
  close(): void;
};

/** Mounts the disk so that only explicit syncs write data to the device. */
export function mountCutDisk(mib: number): CutDisk {
  const place = mkdtempSync(join(tmpdir(), 'podwright-cut-'));
  const image = join(place, 'disk');
  const [folder, after] = [join(place, 'folder'), join(place, 'after')];
  let cuts = 0;
  for (const path of [folder, after]) mkdirSync(path);
  writeFileSync(image, '');
  truncateSync(image, mib * MIB);
  execFileSync('mkfs.ext4', ['-q', '-F', image]);
  // Disables the file system's commit timer and its special handling of renames.
  mount(image, folder, 'loop,commit=3600,noauto_da_alloc');
  return {
    folder,
    afterCut(look) {
      // Uses a new file for each cut: the kernel frees a loop device some time after the umount, and until then
      // mounting the same file again shows the device's old pages.
      cuts += 1;
      const copy = join(place, `disk-after-${cuts}`);
      copyFileSync(image, copy);
      mount(copy, after, 'loop');
      try {
        return look(after);
      } finally {
        execFileSync('umount', [after]);
        rmSync(copy);
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
