/** Which files of a snapshot a drill reads back: by chance, within bounds, and the same for the same seed. Pure. */
import { createHash } from 'node:crypto';
import type { DrillRequest } from '#shared/api/agent/operations.ts';
import type { ListedNode } from './restic-output.ts';

export type SampledFile = Pick<ListedNode, 'path' | 'size' | 'mode' | 'mtime'>;

/** What restic's JSON has in place of bytes that are no UTF-8: such a name cannot be asked for. */
const NO_TEXT = '\u{fffd}';

/** Keeps as many files as are asked for, however many it is told of. */
export function createSampler({ seed, max_files, max_bytes }: DrillRequest['sample']) {
  const ranked: { rank: string; file: SampledFile }[] = [];
  let largest: SampledFile | null = null;
  let seen = 0;

  /** Files with the lowest hashes are a fair choice, in whatever order they are told. */
  function keep(file: SampledFile): void {
    const rank = createHash('sha256').update(`${seed}\0${file.path}`).digest('hex');
    if (ranked.length === max_files && rank > (ranked.at(-1)?.rank ?? '')) return;
    ranked.push({ rank, file });
    ranked.sort((a, b) => (a.rank < b.rank ? -1 : 1));
    ranked.length = Math.min(ranked.length, max_files);
  }

  return {
    add({ type, path, size, mode, mtime }: ListedNode): void {
      if (type !== 'file') return;
      seen += 1;
      if (size > max_bytes || path.includes(NO_TEXT)) return;
      const file = { path, size, mode, mtime };
      if (largest === null || size > largest.size) largest = file;
      keep(file);
    },
    /** Files of the snapshot, chosen or not. */
    seen: () => seen,
    /** The largest that fits, then others by chance as long as they fit. */
    chosen(): SampledFile[] {
      const files: SampledFile[] = [];
      let left = max_bytes;
      for (const file of [largest, ...ranked.map((entry) => entry.file)]) {
        const isKnown = file === null || files.some(({ path }) => path === file.path);
        if (isKnown || file.size > left || files.length === max_files) continue;
        files.push(file);
        left -= file.size;
      }
      return files;
    },
  };
}
