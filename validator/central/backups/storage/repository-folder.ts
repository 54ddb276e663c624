/**
 * Files of a repository on disk: the layout of a local restic repository, plus the repository's owner and running
 * uploads.
 */
import { mkdir, open, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { hasCode } from '#shared/runtime/errors.ts';
import { makeFolder } from '#shared/runtime/files.ts';
import {
  isRepositoryId,
  OBJECT_TYPES,
  type ObjectType,
  type RepositoryFile,
} from './restic-protocol.ts';
import { chargedBytes } from './storage-limits.ts';

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
/** Name of the file with the id of the account that owns the repository. */
const OWNER = 'owner';
/** Name of the folder of running uploads. */
const ARRIVING = 'arriving';
/**
 * Folder beside the repositories. It contains one folder for each removed repository, because a removed id is never
 * used again.
 */
export const REMOVED = 'removed';

/** Folders over which data files are distributed by the first two digits of their names. */
export const DATA_FOLDERS: readonly string[] = Array.from({ length: 256 }, (_, n) =>
  n.toString(16).padStart(2, '0'),
);

/** Returns the folders of a type, relative to the repository. */
export function foldersOf(type: ObjectType): string[] {
  return type === 'data' ? DATA_FOLDERS.map((name) => join(type, name)) : [type];
}

/** Returns the path relative to the repository. */
export function pathOf(file: RepositoryFile): string {
  if (file === 'config') return file;
  const { type, name } = file;
  return type === 'data' ? join(type, name.slice(0, 2), name) : join(type, name);
}

export const arrivingIn = (repository: string): string => join(repository, ARRIVING);

/** Creates the folders and the owner file of a repository; existing folders and files are unchanged. */
export async function makeRepository(repository: string, accountId: string): Promise<void> {
  for (const name of [...OBJECT_TYPES, ARRIVING]) makeFolder(join(repository, name));
  if ((await ownerOf(repository)) === null) {
    const temporary = join(repository, `${OWNER}.new`);
    await writeFile(temporary, accountId, { mode: FILE_MODE, flush: true });
    await rename(temporary, join(repository, OWNER));
  }
  for (const path of [repository, dirname(repository)]) await syncFolder(path);
}

/** Creates one of the 256 data folders for its first object; returns false if the repository does not exist. */
export async function makeDataFolder(path: string): Promise<boolean> {
  try {
    await mkdir(path, { mode: FOLDER_MODE });
    await syncFolder(dirname(path));
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    if (!hasCode(error, 'EEXIST')) throw error;
  }
  return true;
}

/** Returns the account; null if the repository does not exist or is incomplete. */
export async function ownerOf(repository: string): Promise<string | null> {
  const text = await unlessAbsent(readFile(join(repository, OWNER), 'utf8'));
  return text === null || !isRepositoryId(text) ? null : text;
}

/** Returns the ids of the repositories below `root`. */
export async function listRepositories(root: string): Promise<string[]> {
  return ((await unlessAbsent(readdir(root))) ?? []).filter(isRepositoryId);
}

/** Returns the charged bytes of a repository; 0 if it is absent. */
export async function bytesStored(repository: string): Promise<number> {
  let bytes = (await sizeOf(join(repository, 'config'))) ?? 0;
  if (bytes > 0) bytes = chargedBytes(bytes);
  for (const folder of OBJECT_TYPES.flatMap(foldersOf)) {
    const path = join(repository, folder);
    for (const name of (await unlessAbsent(readdir(path))) ?? []) {
      const size = await sizeOf(join(path, name));
      if (size !== null) bytes += chargedBytes(size);
    }
  }
  return bytes;
}

/** Returns the bytes of a file; null if it is absent. */
export async function sizeOf(path: string): Promise<number | null> {
  return (await unlessAbsent(stat(path)))?.size ?? null;
}

/** Syncs a folder, so that new names in it survive a crash. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Resolves to null instead of rejecting with ENOENT. */
export async function unlessAbsent<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
}
