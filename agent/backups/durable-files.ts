/** Changes of folders that hold after a power cut, and can be repeated: what is done already is left. */
import { chown, lstat, mkdir, open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Whether anything is there; a link counts as itself. */
export async function exists(path: string): Promise<boolean> {
  return (await lstatOrNull(path)) !== null;
}

/** Moves `from` to `to` where `from` is there and `to` is not; the folders of both are on disk then. */
export async function moveOnce(from: string, to: string): Promise<void> {
  if (!(await exists(from)) || (await exists(to))) return;
  await rename(from, to);
  await syncFolder(dirname(to));
  await syncFolder(dirname(from));
}

/** Makes what is missing of `folder`, each with the owner of the one that it lies in. */
export async function ensureFolders(folder: string): Promise<void> {
  if (await exists(folder)) return;
  const parent = dirname(folder);
  await ensureFolders(parent);
  const { uid, gid } = await lstat(parent);
  await mkdir(folder, { mode: 0o755 });
  await chown(folder, uid, gid);
  await syncFolder(parent);
}

/** Puts the entries of a folder on disk. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function lstatOrNull(path: string) {
  return lstat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return null;
    throw error;
  });
}
