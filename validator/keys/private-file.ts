/** Files that hold secrets: only their owner may read them, as systemd hands over credentials too (validator reference 3). */
import { readFileSync, statSync } from 'node:fs';
import { ConfigError } from '#shared/config.ts';
import { fileProblem } from '#shared/file-problem.ts';

/** Far more than a key or a passphrase needs. */
const MAX_BYTES = 65_536;
/** Where systemd puts credentials, a folder per service that others cannot enter: the bits of a file in it may be an access list's. */
export const CREDENTIALS = '/run/credentials/';

/**
 * The text in `path`, without line breaks at its end. Throws ConfigError, for no repeat would help, when it cannot be
 * read, others may read it, or it is too long.
 */
export function readPrivateText(path: string): string {
  const { mode, size, text } = readWhole(path);
  if ((mode & 0o077) !== 0 && !path.startsWith(CREDENTIALS)) {
    const bits = (mode & 0o777).toString(8);
    throw new ConfigError(`${path} may be read by others (mode ${bits}): chmod 600 ${path}`);
  }
  if (size > MAX_BYTES) throw new ConfigError(`${path} is longer than ${MAX_BYTES} bytes`);
  return text.replace(/[\r\n]+$/, '');
}

function readWhole(path: string) {
  try {
    const { mode, size } = statSync(path);
    return { mode, size, text: size > MAX_BYTES ? '' : readFileSync(path, 'utf8') };
  } catch (cause) {
    throw new ConfigError(fileProblem(path, cause), { cause });
  }
}
