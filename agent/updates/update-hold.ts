/** A provider's word that the agent is not to be replaced now: a file in its home, whose text says why. */
import { closeSync, constants, openSync, readSync } from 'node:fs';

const MAX_BYTES = 500;
const WITHOUT_WORDS = 'held by the file update-hold in the agent’s home';

/** Null while there is no file at `path`. */
export function createUpdateHold(path: string): () => string | null {
  return () => {
    let file: number;
    try {
      // A pipe would keep us until somebody writes.
      file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    } catch {
      return null;
    }
    try {
      const text = Buffer.alloc(MAX_BYTES);
      return text.toString('utf8', 0, readSync(file, text)).trim() || WITHOUT_WORDS;
    } finally {
      closeSync(file);
    }
  };
}
