/** A secret in a file of its own: made once, mode 0600, and refused where others may read it. */
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { ConfigError } from './config.ts';
import { hasCode, messageOf } from './errors.ts';
import type { Random } from './random.ts';
import { isCredential } from './secrets.ts';

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

// MERGED shared/runtime/files.ts: Makes folders.
/**
 * The folder at `path` and those above it that are missing, mode 0700. Throws what the system says of the first that cannot be
 * made. Node's own `recursive` never comes back where a folder that exists takes no other, as /proc.
 */
export function makeFolder(path: string): void {
  const missing: string[] = [];
  for (let at = resolve(path); !existsSync(at); at = dirname(at)) missing.unshift(at);
  for (const each of missing) {
    try {
      mkdirSync(each, { mode: 0o700 });
    } catch (error) {
      // Another process was quicker.
      if (!hasCode(error, 'EEXIST')) throw error;
    }
  }
}

/** The same for a folder that `variable` names and a process keeps its files in. Throws ConfigError where it could not. */
export function requireFolder(path: string, variable: string): void {
  try {
    makeFolder(path);
    if (!statSync(path).isDirectory()) throw new Error('it is no folder');
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (cause) {
    const message = `${variable} ${path} cannot be written: ${messageOf(cause)}`;
    throw new ConfigError(message, { cause });
  }
}

// MERGED shared/runtime/files.ts: Has the kernel put on disk what a folder holds: names that came, changed or went are lost in a power cut until then.
/** Returns when they are there; what the files themselves hold is not its business. */
export function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

// MERGED shared/runtime/files.ts: Why a file that somebody named cannot be used, in words that name it once.
/** Of what reading `path` threw. */
export function fileProblem(path: string, error: unknown): string {
  if (hasCode(error, 'ENOENT')) return `there is no file ${path}`;
  if (hasCode(error, 'EACCES')) return `${path} may not be read by this user`;
  if (hasCode(error, 'EISDIR')) return `${path} is a folder`;
  return `${path}: ${messageOf(error)}`;
}
