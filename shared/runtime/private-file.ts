/** A secret in a file of its own: made once, mode 0600, and refused where others may read it. */
import {
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { isCredential } from '../signing/own-credentials.ts';
import { ConfigError } from './config.ts';
import { hasCode } from './errors.ts';
import { fileProblem } from './file-problem.ts';
import { makeFolder } from './make-folder.ts';
import type { Random } from './random.ts';
import { syncFolder } from './sync-folder.ts';

/**
 * The file's content, made by `make` where there is none. A kill in between leaves the whole file or none, and of two
 * processes that make it at a time both get the same. Throws when others may read it.
 */
export function readOrMakePrivateFile(
  path: string,
  make: () => Uint8Array,
  random: Random,
): Uint8Array {
  const present = readPrivateFile(path);
  if (present !== null) return present;
  try {
    makePrivateFile(path, make(), random);
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  }
  const made = readPrivateFile(path);
  if (made === null) throw new Error(`${path} vanished`);
  return made;
}

/** Writes a new file, whole or not at all; mode 0600. Throws EEXIST where there is one. */
export function makePrivateFile(path: string, content: string | Uint8Array, random: Random): void {
  makeFolder(dirname(path));
  const draft = `${path}.${random.uuid()}`;
  try {
    writeDurably(draft, Buffer.from(content));
    // Unlike a rename, a link never replaces a file that another process has made meanwhile.
    linkSync(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
  syncFolder(dirname(path));
}

/** Null where there is none. Throws ConfigError when others may read it, or this user may not. */
export function readPrivateFile(path: string): Uint8Array | null {
  try {
    requirePrivate(path);
    return new Uint8Array(readFileSync(path));
  } catch (cause) {
    if (hasCode(cause, 'ENOENT')) return null;
    const isOurs = !hasCode(cause, 'EACCES') && !hasCode(cause, 'EISDIR');
    throw isOurs ? cause : new ConfigError(fileProblem(path, cause), { cause });
  }
}

/** Throws ConfigError when others may read the file at `path`, and what the system says when there is none. */
export function requirePrivate(path: string): void {
  const bits = statSync(path).mode & 0o777;
  if ((bits & 0o077) === 0 || isCredential(path)) return;
  throw new ConfigError(
    `${path} may be read by others (mode ${bits.toString(8)}): chmod 600 ${path}`,
  );
}

/** Replaces the file whole or not at all; mode 0600. */
export function replacePrivateFile(
  path: string,
  content: string | Uint8Array,
  random: Random,
): void {
  makeFolder(dirname(path));
  const draft = `${path}.${random.uuid()}`;
  try {
    writeDurably(draft, Buffer.from(content));
    renameSync(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
  syncFolder(dirname(path));
}

function writeDurably(path: string, bytes: Uint8Array): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    // Unlike writeSync, it goes on where a disk takes less than all at once, and fails where it takes no more.
    writeFileSync(file, bytes);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
