/** An append-only file that never grows beyond a bound: the older half lives on in `<path>.1`. */
import { appendFileSync, renameSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { makeFolder } from '#shared/runtime/files.ts';

export type CappedFile = { path: string; write(chunk: Uint8Array | string): void };

const MAX_BYTES = 10 * 1024 * 1024;

/** Together with `<path>.1` at most 20 MiB. A full disk loses log lines, not the process. */
export function createCappedFile(path: string): CappedFile {
  makeFolder(dirname(path));
  let size = sizeOf(path);
  return {
    path,
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
