/** restic 0.14 writes the holes of sparse files out: a restored tree could take far more than the one that it was. */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunCommand } from '#shared/runtime/run-command.ts';

/** Smaller files are left as they are, and so are smaller holes. */
export const SPARSE_FROM_BYTES = 1024 * 1024;
const LOOK_EVERY_BYTES = 512 * 1024;
const LOOK_BYTES = 4_096;
const BATCH = 100;
const DIG_MS = 30 * 60_000;
const ZEROS = Buffer.alloc(LOOK_BYTES);

/**
 * Digging counts as a change: the times go aside to the file `$1`, and back. Where the file system knows no holes, or
 * the host no `fallocate`, the files stay as they are.
 */
const DIG = `aside=$1; shift; for file; do touch -r "$file" "$aside" || exit 1; fallocate --dig-holes -- "$file" 2>/dev/null; touch -r "$aside" "$file" || exit 1; done`;

/** Whether a few samples of it hold nothing but zeros. */
export async function looksSparse(path: Buffer, size: number): Promise<boolean> {
  const file = await open(path, 'r');
  try {
    const bytes = Buffer.alloc(LOOK_BYTES);
    for (let at = LOOK_EVERY_BYTES; at + LOOK_BYTES <= size; at += LOOK_EVERY_BYTES) {
      await file.read(bytes, 0, LOOK_BYTES, at);
      if (bytes.equals(ZEROS)) return true;
    }
    return false;
  } finally {
    await file.close();
  }
}

/** Makes holes of zeros, contents and times unchanged. `folder`: nobody else's, for what goes aside. */
export async function digHoles(
  paths: readonly string[],
  { folder, runCommand }: { folder: string; runCommand: RunCommand },
): Promise<void> {
  for (let at = 0; at < paths.length; at += BATCH) {
    const batch = paths.slice(at, at + BATCH);
    const args = ['-c', DIG, 'sh', join(folder, 'times'), ...batch];
    const { exitCode } = await runCommand('sh', args, { timeoutMs: DIG_MS, maxOutputBytes: 4_096 });
    if (exitCode !== 0) throw new Error(`holes could not be dug: exit ${exitCode}`);
  }
}
