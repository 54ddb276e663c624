/** Log file of `npm start` and its children, with a maximum size. */
import { appendFileSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolder } from '#shared/runtime/files.ts';
import type { ChildOutput } from '#shared/runtime/supervised-child.ts';

export type CappedFile = ChildOutput & { write(chunk: Uint8Array | string): void };

const MAX_BYTES = 10 * 1024 * 1024;

/** Append-only file that rotates to `<path>.1`, at most 20 MiB together. A full disk loses log lines only. */
export function createCappedFile(path: string): CappedFile {
  makeFolder(dirname(path));
  let size = sizeOf(path);
  return {
    place: `log: ${path}`,
    write(chunk) {
      try {
        if (size > MAX_BYTES) {
          renameSync(path, `${path}.1`);
          size = 0;
        }
        appendFileSync(path, chunk, { mode: 0o600 });
        size += chunk.length;
      } catch {
        size = sizeOf(path);
      }
    },
  };
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
