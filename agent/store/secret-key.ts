/** The key that the agent seals secrets with: 32 random bytes in a file of its home, made once. */
import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Random } from '#shared/random.ts';

const KEY_FILE = 'secret.key';
const KEY_BYTES = 32;

/**
 * Reads the key, making it first where there is none. A kill in between leaves the whole file or none.
 * Throws when others may read it, or when it holds something else: what was sealed would be lost unnoticed.
 */
export function openSecretKey(home: string, random: Random): Uint8Array {
  const path = join(home, KEY_FILE);
  return readKey(path) ?? readMade(path, home, random);
}

function readMade(path: string, home: string, random: Random): Uint8Array {
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const draft = `${path}.${random.uuid()}`;
  writeDurably(draft, random.bytes(KEY_BYTES));
  try {
    // Unlike a rename, a link never replaces a key that another process has made meanwhile.
    linkSync(draft, path);
  } catch (error) {
    if (!hasCode(error, 'EEXIST')) throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  syncFolder(home);
  const key = readKey(path);
  if (key === null) throw new Error(`${path} vanished`);
  return key;
}

function readKey(path: string): Uint8Array | null {
  let mode: number;
  try {
    mode = statSync(path).mode & 0o777;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
  if ((mode & 0o077) !== 0) {
    throw new Error(`${path} may be read by others (mode ${mode.toString(8)}): chmod 600 ${path}`);
  }
  const key = readFileSync(path);
  if (key.length !== KEY_BYTES)
    throw new Error(`${path} does not hold a key of ${KEY_BYTES} bytes`);
  return new Uint8Array(key);
}

function writeDurably(path: string, bytes: Uint8Array): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    writeSync(file, bytes);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
