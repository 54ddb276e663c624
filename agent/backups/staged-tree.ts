/** A restored tree before it is put in place: measured, and rid of what no pod may have. */
import { isUtf8 } from 'node:buffer';
import { lstat, open, opendir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunCommand } from '#shared/runtime/run-command.ts';

export type TreeMeasure = {
  /** Folders, files, links and all else. */
  entries: number;
  /** Of files; each hard-linked one once. */
  bytes: number;
  /** Device files, which are gone. */
  removedDevices: number;
  /** Files with long runs of zeros, each hard-linked one once, but for those whose names are no UTF-8. */
  sparse: string[];
};

const SLASH = Buffer.from('/');
/** One character for each byte: names in pods are bytes, and need be no UTF-8. */
const BYTES = 'latin1';

/**
 * Walks the tree below `folder`, not `folder` itself, following no link. Device files are removed: a pod cannot
 * make any, so one that came from a repository is an attempt on the host.
 */
export async function measureTree(folder: string, signal: AbortSignal): Promise<TreeMeasure> {
  const measure: TreeMeasure = { entries: 0, bytes: 0, removedDevices: 0, sparse: [] };
  const linked = new Set<number>();
  const waiting = [Buffer.from(folder)];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for await (const entry of await opendir(next, { encoding: BYTES })) {
      signal.throwIfAborted();
      const path = Buffer.concat([next, SLASH, Buffer.from(entry.name, BYTES)]);
      measure.entries += 1;
      if (entry.isDirectory()) {
        waiting.push(path);
      } else if (entry.isBlockDevice() || entry.isCharacterDevice()) {
        await unlink(path);
        measure.removedDevices += 1;
      } else if (entry.isFile()) {
        const { size, nlink, ino } = await lstat(path);
        const isNew = nlink === 1 || !linked.has(ino);
        if (nlink > 1) linked.add(ino);
        if (!isNew) continue;
        measure.bytes += size;
        // Any other name could not be given to a program.
        const isNamed = size >= SPARSE_FROM_BYTES && isUtf8(path);
        if (isNamed && (await looksSparse(path, size))) measure.sparse.push(path.toString());
      }
    }
  }
  return measure;
}

// MERGED agent/backups/staged-tree.ts: restic 0.14 writes the holes of sparse files out: a restored tree could take far more than the one that it was.
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
