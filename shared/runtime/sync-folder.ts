/** Has the kernel put on disk what a folder holds: names that came, changed or went are lost in a power cut until then. */
import { closeSync, fsyncSync, openSync } from 'node:fs';

/** Returns when they are there; what the files themselves hold is not its business. */
export function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
