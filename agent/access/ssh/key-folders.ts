/** Keys for pods that bring their own SSH server: a folder per pod, mounted read-only. */
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

/** Mode of the key file. SSH servers read it as root, and reject a file that other users may write. */
const FILE_MODE = 0o644;
const FOLDER_MODE = 0o755;

export type KeyFolders = {
  /** Writes the keys if they changed and returns the pod's folder. Throws if it cannot be written. */
  write(podId: string, keys: readonly string[]): string;
  /** Removes the folders of all other pods. */
  retain(podIds: ReadonlySet<string>): void;
};

/**
 * Creates a folder per pod below `root`. `write` replaces the key file by a rename inside the folder. It does not replace
 * the folder, because the pod's mount would still show the old one.
 */
export function createKeyFolders(root: string): KeyFolders {
  return {
    write(podId, keys) {
      const folder = join(root, podId);
      const file = join(folder, 'authorized_keys');
      const text = keys.map((key) => `${key}\n`).join('');
      if (readOrNull(file) === text) return folder;
      mkdirSync(folder, { recursive: true });
      chmodSync(folder, FOLDER_MODE);
      writeFileSync(`${file}.new`, text, { mode: FILE_MODE });
      chmodSync(`${file}.new`, FILE_MODE);
      renameSync(`${file}.new`, file);
      return folder;
    },
    retain(podIds) {
      for (const podId of listOrNone(root)) {
        if (!podIds.has(podId)) rmSync(join(root, podId), { recursive: true, force: true });
      }
    },
  };
}

function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

function listOrNone(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
