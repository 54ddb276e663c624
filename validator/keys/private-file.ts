/** Files that hold secrets: only their owner may read them, as systemd hands over credentials too (validator reference 3). */
import { readFileSync, statSync } from 'node:fs';
import { ConfigError } from '#shared/runtime/config.ts';
import { fileProblem, requirePrivate } from '#shared/runtime/files.ts';

/** Far more than a key or a passphrase needs. */
const MAX_BYTES = 65_536;

/**
 * The text in `path`, without line breaks at its end. Throws ConfigError, for no repeat would help, when it cannot be
 * read, others may read it, or it is too long.
 */
export function readPrivateText(path: string): string {
  try {
    requirePrivate(path);
    if (statSync(path).size <= MAX_BYTES) return readFileSync(path, 'utf8').replace(/[\r\n]+$/, '');
  } catch (cause) {
    if (cause instanceof ConfigError) throw cause;
    throw new ConfigError(fileProblem(path, cause), { cause });
  }
  throw new ConfigError(`${path} is longer than ${MAX_BYTES} bytes`);
}
