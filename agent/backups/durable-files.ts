/**
 * Changes folders durably and repeatably: changes survive a power loss, and a repeated call skips what is already done.
 */
import { chown, lstat, mkdir, open, rename } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Returns true if something exists at the path; does not follow a link. */
export async function exists(path: string): Promise<boolean> {
  return (await lstatOrNull(path)) !== null;
}

/** Renames `from` to `to` if `from` exists and `to` does not, and syncs both folders. */
export async function moveOnce(from: string, to: string): Promise<void> {
  if (!(await exists(from)) || (await exists(to))) return;
  await rename(from, to);
  await syncFolder(dirname(to));
  await syncFolder(dirname(from));
}

/** Creates the missing folders of a path, each with the owner of its parent. */
export async function ensureFolders(folder: string): Promise<void> {
  if (await exists(folder)) return;
  const parent = dirname(folder);
  await ensureFolders(parent);
  const { uid, gid } = await lstat(parent);
  await mkdir(folder, { mode: 0o755 });
  await chown(folder, uid, gid);
  await syncFolder(parent);
}

/** Syncs the entries of a folder to disk. */
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
