/** Files that the kernel makes while they are read: of /proc and of control groups. */
import { closeSync, openSync, readSync } from 'node:fs';

const CHUNK_BYTES = 64 * 1024;

export type KernelFiles = {
  /** The whole text. Throws the system's error, or that there are more than `maxBytes`. */
  read(path: string, maxBytes: number): string;
};

/**
 * This host's. At once and not through the thread pool: the kernel answers from memory, and a turn of the pool costs
 * several times what such a file does.
 */
export function createKernelFiles(): KernelFiles {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  return {
    read(path, maxBytes) {
      const file = openSync(path, 'r');
      try {
        let text = '';
        for (;;) {
          const count = readSync(file, chunk);
          if (count === 0) return text;
          // What is looked for is ASCII, and no character is cut at the end of a chunk.
          text += chunk.toString('latin1', 0, count);
          if (text.length > maxBytes) throw new Error(`${path} has more than ${maxBytes} bytes`);
        }
      } finally {
        closeSync(file);
      }
    },
  };
}
