/** Files with the secrets of pods, in a folder per pod on a file system in memory. Containers mount the folders. */
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { PodSecret } from '#shared/api/agent/pod-secrets.ts';
import { hasCode, messageOf } from '#shared/runtime/errors.ts';

/** Types of file systems in memory, from statfs(2): tmpfs and ramfs. */
const IN_MEMORY: ReadonlySet<number> = new Set([0x01021994, 0x858458f6]);
/** Modes. Only the agent can enter `root`; a container has access only to the folder of its pod, whatever its user. */
const ROOT_MODE = 0o700;
const FOLDER_MODE = 0o755;
const FILE_MODE = 0o400;
const PERMISSION_BITS = 0o777;

/** User and group inside the container that own the files. */
export type SecretOwner = { uid: number; gid: number };

export type SecretFiles = {
  /** Why this host cannot hold secrets; null if it can. */
  problem(): string | null;
  /** Writes the files if they are missing or differ, and returns the folder. Throws if they cannot be written. */
  write(podId: string, secrets: readonly PodSecret[], owner: SecretOwner): string;
  /** Removes the folder of a pod, and `root` with the last one. */
  remove(podId: string): void;
  /** Removes the folders of all other pods. */
  retain(podIds: ReadonlySet<string>): void;
};

/**
 * `root` is created when it is first needed. A host that reboots loses it; `write` before each start of a container
 * creates it again. Files are replaced by renames inside the folder, because a container would not see a replaced folder.
 */
export function createSecretFiles(root: string): SecretFiles {
  function prepareRoot(): void {
    mkdirSync(root, { recursive: true, mode: ROOT_MODE });
    const found = lstatSync(root);
    if (!found.isDirectory() || found.uid !== ownUid()) {
      throw new Error(`${root} belongs to another user`);
    }
    if ((found.mode & PERMISSION_BITS) !== ROOT_MODE) chmodSync(root, ROOT_MODE);
    if (!IN_MEMORY.has(statfsSync(root).type)) {
      throw new Error(`${root} is not on a file system in memory (tmpfs)`);
    }
  }

  function replaceFile(file: string, text: string, owner: SecretOwner): void {
    const fresh = `${file}.new`;
    rmSync(fresh, { force: true });
    writeFileSync(fresh, text, { mode: FILE_MODE, flag: 'wx' });
    chmodSync(fresh, FILE_MODE);
    // Only root can change the owner of a file. With the agent's owner, root in the container can still read it.
    if (ownUid() === 0) chownSync(fresh, owner.uid, owner.gid);
    renameSync(fresh, file);
  }

  return {
    problem() {
      try {
        prepareRoot();
        return null;
      } catch (error) {
        return messageOf(error);
      }
    },

    write(podId, secrets, owner) {
      prepareRoot();
      const folder = join(root, podId);
      mkdirSync(folder, { recursive: true });
      chmodSync(folder, FOLDER_MODE);
      for (const { name, value } of secrets) {
        const file = join(folder, name);
        if (readOrNull(file) !== value) replaceFile(file, value, owner);
      }
      const names = new Set(secrets.map(({ name }) => name));
      for (const name of listOrNone(folder)) {
        if (!names.has(name)) rmSync(join(folder, name), { force: true });
      }
      return folder;
    },

    remove(podId) {
      rmSync(join(root, podId), { recursive: true, force: true });
      if (listOrNone(root).length === 0) rmSync(root, { recursive: true, force: true });
    },

    retain(podIds) {
      for (const podId of listOrNone(root)) {
        if (!podIds.has(podId)) rmSync(join(root, podId), { recursive: true, force: true });
      }
    },
  };
}

function ownUid(): number {
  return process.getuid?.() ?? 0;
}

function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return null;
    throw error;
  }
}

function listOrNone(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
