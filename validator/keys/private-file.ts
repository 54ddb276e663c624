/** Files that hold secrets: only their owner may read them, as systemd hands over credentials too (validator reference 3). */
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { requirePrivate } from '#shared/private-file.ts';

/** Far more than a key or a passphrase needs. */
const MAX_BYTES = 65_536;

/** The text in `path`, without line breaks at its end. Throws when others may read the file, or it is too long. */
export function readPrivateText(path: string): string {
  requirePrivate(path);
  const { size } = statSync(path);
  if (size > MAX_BYTES) throw new Error(`${path} is longer than ${MAX_BYTES} bytes`);
  return readFileSync(path, 'utf8').replace(/[\r\n]+$/, '');
}

/** Writes a new file with mode 0600, and the folders above it with 0700. Throws where there is one already. */
export function writePrivateText(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const file = openSync(path, 'wx', 0o600);
  try {
    writeSync(file, `${text}\n`);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
