/** A restored tree before it is put in place: measured, and rid of what no pod may have. */
import { lstat, opendir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { looksSparse, SPARSE_FROM_BYTES } from './sparse-files.ts';

export type TreeMeasure = {
  /** Folders, files, links and all else. */
  entries: number;
  /** Of files; each hard-linked one once. */
  bytes: number;
  /** Device files, which are gone. */
  removedDevices: number;
  /** Files with long runs of zeros, each hard-linked one once. */
  sparse: string[];
};

/**
 * Walks the tree below `folder`, not `folder` itself, following no link. Device files are removed: a pod cannot
 * make any, so one that came from a repository is an attempt on the host.
 */
export async function measureTree(folder: string, signal: AbortSignal): Promise<TreeMeasure> {
  const measure: TreeMeasure = { entries: 0, bytes: 0, removedDevices: 0, sparse: [] };
  const linked = new Set<number>();
  const waiting = [folder];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for await (const entry of await opendir(next)) {
      signal.throwIfAborted();
      const path = join(next, entry.name);
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
        const isSparse = size >= SPARSE_FROM_BYTES && (await looksSparse(path, size));
        if (isSparse) measure.sparse.push(path);
      }
    }
  }
  return measure;
}
