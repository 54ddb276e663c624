/** Where a repository's files lie: as restic itself lays out a local repository, with our own notes beside them. */
import { mkdir, open, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { chargedBytes } from './account-usage.ts';
import {
  isRepositoryId,
  OBJECT_TYPES,
  type ObjectType,
  type RepositoryFile,
} from './restic-path.ts';

const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
/** Whose it is. */
const OWNER = 'owner';
/** Uploads on their way. */
const ARRIVING = 'arriving';
/** Beside the repositories: one folder for each that was removed, so that none comes back. */
export const REMOVED = 'removed';

/** Data is spread over 256 folders by the first two digits of the name. */
export const DATA_FOLDERS: readonly string[] = Array.from({ length: 256 }, (_, n) =>
  n.toString(16).padStart(2, '0'),
);

/** Folders that hold objects of a type, relative to the repository. */
export function foldersOf(type: ObjectType): string[] {
  return type === 'data' ? DATA_FOLDERS.map((name) => join(type, name)) : [type];
}

/** Relative to the repository. */
export function pathOf(file: RepositoryFile): string {
  if (file === 'config') return file;
  const { type, name } = file;
  return type === 'data' ? join(type, name.slice(0, 2), name) : join(type, name);
}

export const arrivingIn = (repository: string): string => join(repository, ARRIVING);

/** The folder of a repository below `root`, with everything in it; what is there already stays. */
export async function makeRepository(repository: string, accountId: string): Promise<void> {
  for (const name of [...OBJECT_TYPES, ARRIVING]) {
    await mkdir(join(repository, name), { recursive: true, mode: FOLDER_MODE });
  }
  if ((await ownerOf(repository)) === null) {
    const beside = join(repository, `${OWNER}.new`);
    await writeFile(beside, accountId, { mode: FILE_MODE, flush: true });
    await rename(beside, join(repository, OWNER));
  }
  for (const path of [repository, dirname(repository)]) await syncFolder(path);
}

/** One of the 256 folders of data, made with its first object. False without its repository. */
export async function makeDataFolder(path: string): Promise<boolean> {
  try {
    await mkdir(path, { mode: FOLDER_MODE });
    await syncFolder(dirname(path));
  } catch (error) {
    if (isCode(error, 'ENOENT')) return false;
    if (!isCode(error, 'EEXIST')) throw error;
  }
  return true;
}

/** The account; null when there is no such repository, or not yet. */
export async function ownerOf(repository: string): Promise<string | null> {
  const text = await unlessAbsent(readFile(join(repository, OWNER), 'utf8'));
  return text === null || !isRepositoryId(text) ? null : text;
}

/** Ids of the repositories below `root`. */
export async function listRepositories(root: string): Promise<string[]> {
  return ((await unlessAbsent(readdir(root))) ?? []).filter(isRepositoryId);
}

/** Charged bytes of everything stored in a repository; 0 when it is absent. */
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

/** Bytes of a file; null when it is absent. */
export async function sizeOf(path: string): Promise<number | null> {
  return (await unlessAbsent(stat(path)))?.size ?? null;
}

/** A name is on disk once its folder is. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Null where there is no such file or folder. */
export async function unlessAbsent<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (isCode(error, 'ENOENT')) return null;
    throw error;
  }
}

export function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}
