/** Entries of a damaged snapshot that restic could not restore. Names come from the repository, and are not trusted. */
import { lstat, unlink } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { FileList } from '#shared/api/agent/operations.ts';
import { createFileList } from './file-list.ts';
import { OperationFailure } from './operation.state.ts';

const SEPARATOR = ': ';

/**
 * Removes the incomplete files from the restored tree below `folder`, whose only entry is the tree. Returns the lost
 * entries with the paths that they would have below `targetPath`; a lost folder stays, without its content.
 * `texts`: restic's reports, `PATH: ERROR`. Rejects if nothing of the tree could be read.
 */
export async function dropLost(
  folder: string,
  texts: Iterable<string>,
  { tree, targetPath }: { tree: string; targetPath: string },
): Promise<FileList> {
  const top = `/${basename(tree)}`;
  const paths = new Set<string>();
  for (const text of texts) paths.add(await pathIn(folder, text));
  const lost = createFileList();
  for (const path of paths) {
    if (path === top || path === '/') {
      throw new OperationFailure('RepositoryCorrupt', 'Nothing of the backup can be read');
    }
    lost.add(path.startsWith(`${top}/`) ? targetPath + path.slice(top.length) : path);
    const entry = await entryAt(folder, path);
    if (entry !== null && !entry.isFolder) await unlink(entry.path);
  }
  return lost.list;
}

/** Returns the path of a report. A name may contain the separator: the longest path that exists is preferred. */
async function pathIn(folder: string, text: string): Promise<string> {
  const parts = text.split(SEPARATOR);
  for (let count = parts.length - 1; count > 1; count -= 1) {
    const path = parts.slice(0, count).join(SEPARATOR);
    if ((await entryAt(folder, path)) !== null) return path;
  }
  return parts[0] ?? text;
}

/** Returns the entry at the path, without following a link; null if there is none. */
async function entryAt(
  folder: string,
  path: string,
): Promise<{ path: string; isFolder: boolean } | null> {
  let at = folder;
  let isFolder = true;
  for (const name of path.split('/').filter((step) => step !== '')) {
    if (!isFolder || name === '.' || name === '..') return null;
    at = join(at, name);
    const found = await lstat(at).catch(() => null);
    if (found === null) return null;
    isFolder = found.isDirectory();
  }
  return { path: at, isFolder };
}
