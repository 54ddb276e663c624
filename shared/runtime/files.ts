/** Private files (mode 0600, written atomically and durably) and private folders (mode 0700). */
import {
  accessSync,
  chownSync,
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
import { isSystemdCredential } from './secrets.ts';

/**
 * Returns the file's content, or creates the file with the result of `make`. After a crash the file is either complete
 * or absent. If two processes create it at once, both return the same content. Throws ConfigError if other users may
 * read it.
 */
export function readOrCreatePrivateFile(
  path: string,
  make: () => Uint8Array,
  random: Random,
): Uint8Array {
  const present = readPrivateFile(path);
  if (present !== null) return present;
  try {
    createPrivateFile(path, make(), random);
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  }
  const made = readPrivateFile(path);
  if (made === null) throw new Error(`${path} vanished`);
  return made;
}

/**
 * Returns true if all bytes are equal, as in a block that a file system did not write before a power failure. No key is
 * random and like that.
 */
export function isBlank(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === bytes[0]);
}

/** Creates a file atomically, mode 0600. Throws EEXIST if it exists. */
export function createPrivateFile(
  path: string,
  content: string | Uint8Array,
  random: Random,
): void {
  // Unlike rename, link never replaces a file that another process has created.
  publishDraft(path, content, random, linkSync);
}

/** Returns null if there is no file. Throws ConfigError if other users may read it, or this user may not. */
export function readPrivateFile(path: string): Uint8Array | null {
  try {
    requirePrivate(path);
    return new Uint8Array(readFileSync(path));
  } catch (cause) {
    if (hasCode(cause, 'ENOENT')) return null;
    const isConfigProblem = hasCode(cause, 'EACCES') || hasCode(cause, 'EISDIR');
    if (!isConfigProblem) throw cause;
    throw new ConfigError(fileProblem(path, cause), { cause });
  }
}

/** Throws ConfigError if other users may read the file, and the system's error if it does not exist. */
export function requirePrivate(path: string): void {
  const bits = statSync(path).mode & 0o777;
  if ((bits & 0o077) === 0 || isSystemdCredential(path)) return;
  throw new ConfigError(
    `${path} may be read by others (mode ${bits.toString(8)}): chmod 600 ${path}`,
  );
}

/** Creates or replaces the file atomically, mode 0600. */
export function replacePrivateFile(
  path: string,
  content: string | Uint8Array,
  random: Random,
): void {
  publishDraft(path, content, random, renameSync);
}

/** Writes a draft beside `path`, which `publish` links or renames to `path`. Content and name are on disk afterwards. */
function publishDraft(
  path: string,
  content: string | Uint8Array,
  random: Random,
  publish: (draft: string, path: string) => void,
): void {
  makeFolder(dirname(path));
  const draft = `${path}.${random.uuid()}`;
  try {
    writeDurably(draft, Buffer.from(content));
    publish(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
  syncFolder(dirname(path));
}

function writeDurably(path: string, bytes: Uint8Array): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    // Unlike writeSync, writeFileSync retries short writes and throws if the disk is full.
    writeFileSync(file, bytes);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/**
 * Creates the folder and its missing parents, mode 0700. Throws the system's error for the first folder that cannot be
 * created. Node's `recursive` option is not used: it hangs below a folder such as /proc that rejects new entries.
 */
export function makeFolder(path: string): void {
  const missing: string[] = [];
  for (let at = resolve(path); !existsSync(at); at = dirname(at)) missing.unshift(at);
  for (const each of missing) {
    try {
      mkdirSync(each, { mode: 0o700 });
    } catch (error) {
      // Another process may have created it first.
      if (!hasCode(error, 'EEXIST')) throw error;
    }
  }
}

/**
 * Changes the owner of a file that root created to the owner of its folder: a command that root runs must leave no file that a service
 * with another user cannot read. Does nothing for other users.
 */
export function giveToOwnerOfFolder(path: string): void {
  if (process.geteuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(resolve(path)));
  chownSync(path, uid, gid);
}

/** Creates the folder that `variable` names. Throws ConfigError if the process cannot write to it. */
export function requireWritableFolder(path: string, variable: string): void {
  try {
    makeFolder(path);
    if (!statSync(path).isDirectory()) throw new Error('not a folder');
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (cause) {
    const message = `${variable} ${path} cannot be written: ${messageOf(cause)}`;
    throw new ConfigError(message, { cause });
  }
}

/**
 * Flushes a folder's entries to disk. Without it, names that were created, renamed or removed may be lost in a power
 * failure. It does not flush the files' contents.
 */
export function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** Describes the error of reading a file, for the person who configured its path. */
export function fileProblem(path: string, error: unknown): string {
  if (hasCode(error, 'ENOENT')) return `there is no file ${path}`;
  if (hasCode(error, 'EACCES')) return `${path} may not be read by this user`;
  if (hasCode(error, 'EISDIR')) return `${path} is a folder`;
  return `${path}: ${messageOf(error)}`;
}
