/**
 * Measures a restored tree before it is put in place, removes device files, and makes sparse files sparse again: restic
 * 0.14 fills holes with zeros, so a restored tree could take far more space than the original.
 */
import { isUtf8 } from 'node:buffer';
import { lstat, open, opendir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { RunCommand } from '#shared/runtime/run-command.ts';

export type TreeMeasure = {
  /** Number of folders, files, links and other entries. */
  entries: number;
  /** Size of files; each hard-linked file counts once. */
  bytes: number;
  /** Number of device files that were removed. */
  removedDevices: number;
  /** Files with long runs of zeros. Each hard-linked file counts once; names that are not UTF-8 are left out. */
  sparse: string[];
};

/** Files that are measured at once, or passed to one program. */
const BATCH = 100;
const SLASH = Buffer.from('/');
/** Encoding of names, one character per byte: names in pods need not be UTF-8. */
const BYTES = 'latin1';

/**
 * Walks the tree below `folder`, without `folder` itself, and follows no link. Deletes device files: a pod cannot
 * create any, so a device file in a repository is an attack on the host.
 */
export async function measureTree(folder: string, signal: AbortSignal): Promise<TreeMeasure> {
  const measure: TreeMeasure = { entries: 0, bytes: 0, removedDevices: 0, sparse: [] };
  const linked = new Set<number>();
  const waiting = [Buffer.from(folder)];
  let files: Buffer[] = [];

  async function addFile(path: Buffer): Promise<void> {
    const { size, nlink, ino } = await lstat(path);
    const isNew = nlink === 1 || !linked.has(ino);
    if (nlink > 1) linked.add(ino);
    if (!isNew) return;
    measure.bytes += size;
    // Other names cannot be passed to a program.
    const isNamed = size >= SPARSE_FROM_BYTES && isUtf8(path);
    if (isNamed && (await looksSparse(path, size))) measure.sparse.push(path.toString());
  }

  async function addFiles(): Promise<void> {
    await Promise.all(files.map(addFile));
    files = [];
  }

  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for await (const entry of await opendir(next, { encoding: BYTES, bufferSize: BATCH })) {
      signal.throwIfAborted();
      const path = Buffer.concat([next, SLASH, Buffer.from(entry.name, BYTES)]);
      measure.entries += 1;
      if (entry.isDirectory()) {
        waiting.push(path);
      } else if (entry.isBlockDevice() || entry.isCharacterDevice()) {
        await unlink(path);
        measure.removedDevices += 1;
      } else if (entry.isFile()) {
        files.push(path);
        // One after the other, the files would take four times as long.
        if (files.length === BATCH) await addFiles();
      }
    }
  }
  await addFiles();
  return measure;
}

/**
 * Size from which files are examined, bytes. In such files, holes of this size are found for certain; in a
 * file with only shorter holes, they may remain filled with zeros.
 */
export const SPARSE_FROM_BYTES = 1024 * 1024;
const LOOK_EVERY_BYTES = 512 * 1024;
const LOOK_BYTES = 4_096;
const DIG_MS = 30 * 60_000;
const ZEROS = Buffer.alloc(LOOK_BYTES);

/**
 * Digging holes changes times, so they are saved in the file `$1` and restored. If the file system has no holes, or the
 * host no `fallocate`, the files remain unchanged.
 */
const DIG = `aside=$1; shift; for file; do touch -r "$file" "$aside" || exit 1; fallocate --dig-holes -- "$file" 2>/dev/null; touch -r "$aside" "$file" || exit 1; done`;

/** Returns true if a few samples contain only zeros. */
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

/**
 * Converts runs of zeros to holes without a change of content or times. Only the caller may use `folder`; it receives
 * the saved times.
 */
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
