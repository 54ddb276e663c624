/** Taking repositories away, and what a kill left of that and of uploads. */
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { AccountUsage } from './account-usage.ts';
import {
  arrivingIn,
  bytesStored,
  listRepositories,
  ownerOf,
  REMOVED,
  syncFolder,
  unlessAbsent,
} from './repository-folder.ts';

/** In the folder that stays of a removed repository: all that it held, until it is deleted. */
const CONTENT = 'content';

export type RemovalDeps = { root: string; usage: AccountUsage };

export type Removals = ReturnType<typeof createRemovals>;

export function createRemovals({ root, usage }: RemovalDeps) {
  const removedOf = (id: string) => join(root, REMOVED, id);

  /** Out of reach at once, by one rename; an empty folder stays, so that no late upload brings it back. */
  async function putAway(id: string): Promise<void> {
    await mkdir(removedOf(id), { recursive: true, mode: 0o700 });
    await unlessAbsent(rename(join(root, id), join(removedOf(id), CONTENT)));
    for (const path of [removedOf(id), join(root, REMOVED), root]) await syncFolder(path);
  }

  const deleteContent = (id: string) =>
    rm(join(removedOf(id), CONTENT), { recursive: true, force: true });

  return {
    /** An absent repository counts as removed; asked for twice at once, it is removed once. */
    async remove(id: string): Promise<void> {
      const accountId = await ownerOf(join(root, id));
      await putAway(id);
      const take = async () => {
        const bytes = await bytesStored(join(removedOf(id), CONTENT));
        await deleteContent(id);
        return bytes;
      };
      await (accountId === null ? take() : usage.free(accountId, take));
    },

    /** Deletes the rest of removals, and uploads that nobody has written to since `beforeMs` (epoch). */
    async sweep(beforeMs: number): Promise<void> {
      for (const id of (await unlessAbsent(readdir(join(root, REMOVED)))) ?? []) {
        await deleteContent(id);
      }
      for (const id of await listRepositories(root)) {
        const folder = arrivingIn(join(root, id));
        for (const name of (await unlessAbsent(readdir(folder))) ?? []) {
          const path = join(folder, name);
          const file = await unlessAbsent(stat(path));
          if (file !== null && file.mtimeMs < beforeMs) await rm(path, { force: true });
        }
      }
    },
  };
}
