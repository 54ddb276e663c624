/** Operations of restic's REST protocol on the files of a repository, and the removal of repositories. */
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { type RepositoryKeys, storeWithOnlyKey } from './only-key.ts';
import { assertMayRemove, type Grant } from './repository-credentials.ts';
import {
  arrivingIn,
  bytesStored,
  foldersOf,
  listRepositories,
  makeRepository,
  ownerOf,
  pathOf,
  REMOVED,
  sizeOf,
  syncFolder,
  unlessAbsent,
} from './repository-folder.ts';
import {
  type ByteRange,
  byteRangeOf,
  notFound,
  type ObjectType,
  type RepositoryFile,
  ResticRefusal,
} from './restic-protocol.ts';
import { type AccountQuota, chargedBytes } from './storage-limits.ts';
import { type Content, placeFile, type Uploads } from './upload.ts';

const NAME = /^[0-9a-f]{64}$/;

export type Reading = { sizeBytes: number; range: ByteRange | null; stream: Readable };

export type RepositoryService = ReturnType<typeof createRepositoryService>;

export type RepositoryServiceDeps = { root: string; quota: AccountQuota; uploads: Uploads };

/** The methods throw `notFound()` for missing files and repositories, except `remove`. */
export function createRepositoryService({ root, quota, uploads }: RepositoryServiceDeps) {
  const folderOf = ({ repositoryId }: Grant) => join(root, repositoryId);
  const at = (grant: Grant, file: RepositoryFile) => join(folderOf(grant), pathOf(file));

  /** Yields JSON folder by folder, so that a long list is never completely in memory. */
  async function* listing(repository: string, type: ObjectType, withSizes: boolean) {
    let lead = '[';
    for (const folder of foldersOf(type)) {
      const path = join(repository, folder);
      const names = ((await unlessAbsent(readdir(path))) ?? []).filter((name) => NAME.test(name));
      const entries = withSizes ? await withSizesOf(path, names) : names;
      if (entries.length === 0) continue;
      yield lead + entries.map((entry) => JSON.stringify(entry)).join(',');
      lead = ',';
    }
    yield lead === '[' ? '[]' : ']';
  }

  function keysOf(grant: Grant): RepositoryKeys {
    const folder = join(folderOf(grant), 'keys');
    return {
      isInitialised: async () => (await sizeOf(at(grant, 'config'))) !== null,
      names: async () => ((await unlessAbsent(readdir(folder))) ?? []).filter((n) => NAME.test(n)),
      async remove(name) {
        await rm(join(folder, name), { force: true });
        await syncFolder(folder);
      },
    };
  }

  return {
    /** Creates the folders. Throws 404 for a removed repository, because its id is never used again. */
    async create(grant: Grant): Promise<void> {
      const wasRemoved = async () =>
        (await sizeOf(join(root, REMOVED, grant.repositoryId))) !== null;
      if (await wasRemoved()) throw notFound();
      await makeRepository(folderOf(grant), grant.accountId);
      // A removal first marks the id and then moves the folders. If the id was marked after the check above, the
      // removal may have missed the folders that this call created, so this call deletes them.
      if (await wasRemoved()) {
        await rm(folderOf(grant), { recursive: true, force: true });
        throw notFound();
      }
    },

    /** `withSizes`: returns `[{name, size}]` of API v2 instead of the names of v1. */
    async list(grant: Grant, type: ObjectType, withSizes: boolean): Promise<Readable> {
      const repository = folderOf(grant);
      if ((await sizeOf(join(repository, type))) === null) throw notFound();
      return Readable.from(listing(repository, type, withSizes), { objectMode: false });
    },

    async size(grant: Grant, file: RepositoryFile): Promise<number> {
      const size = await sizeOf(at(grant, file));
      if (size === null) throw notFound();
      return size;
    },

    /** Throws 416 for a range beyond the end. */
    async read(grant: Grant, file: RepositoryFile, rangeHeader?: string): Promise<Reading> {
      const handle = await unlessAbsent(open(at(grant, file), 'r'));
      if (handle === null) throw notFound();
      try {
        return await readingOf(handle, rangeHeader);
      } catch (error) {
        await handle.close();
        throw error;
      }
    },

    async write(grant: Grant, file: RepositoryFile, content: Content): Promise<void> {
      const reservation = await quota.open(grant.accountId);
      try {
        const folder = arrivingIn(folderOf(grant));
        await uploads.receive({ folder, file }, content, reservation, async (received) => {
          const isNew = await storeWithOnlyKey(file, keysOf(grant), () =>
            placeFile(folderOf(grant), file, received.temporary),
          );
          if (isNew) reservation.commit(received.bytes);
          else reservation.release();
        });
      } catch (error) {
        reservation.release();
        throw error;
      }
    },

    /**
     * Removes a file. An absent file counts as removed, because restic repeats the request for up to 15 minutes after a
     * lost answer. Throws 403 as `assertMayRemove`.
     */
    async remove(grant: Grant, file: RepositoryFile): Promise<void> {
      assertMayRemove(grant, file);
      const path = at(grant, file);
      await quota.free(grant.accountId, async () => {
        const size = await sizeOf(path);
        const existed = size !== null && (await unlessAbsent(rm(path).then(() => true))) !== null;
        if (!existed) return 0;
        await syncFolder(dirname(path));
        return chargedBytes(size);
      });
    },
  };
}

/** Skips files that were removed after the folder was read. */
async function withSizesOf(path: string, names: readonly string[]) {
  const entries: { name: string; size: number }[] = [];
  for (const name of names) {
    const size = await sizeOf(join(path, name));
    if (size !== null) entries.push({ name, size });
  }
  return entries;
}

async function readingOf(handle: FileHandle, rangeHeader?: string): Promise<Reading> {
  const { size } = await handle.stat();
  const range = byteRangeOf(rangeHeader, size);
  if (range === 'unsatisfiable') throw new ResticRefusal(416, 'The range is beyond the end');
  return { sizeBytes: size, range, stream: handle.createReadStream(range ?? {}) };
}

/** Content of a removed repository, until it is deleted. The parent folder is kept and marks the id as removed. */
const CONTENT = 'content';

export type RemovalDeps = { root: string; quota: AccountQuota };

export type Removals = ReturnType<typeof createRemovals>;

export function createRemovals({ root, quota }: RemovalDeps) {
  const removedOf = (id: string) => join(root, REMOVED, id);

  /**
   * Makes the repository unreachable by one rename. The parent folder is kept, so that a late upload cannot create the
   * repository again.
   */
  async function moveAway(id: string): Promise<void> {
    await mkdir(removedOf(id), { recursive: true, mode: 0o700 });
    await unlessAbsent(rename(join(root, id), join(removedOf(id), CONTENT)));
    for (const path of [removedOf(id), join(root, REMOVED), root]) await syncFolder(path);
  }

  const deleteContent = (id: string) =>
    rm(join(removedOf(id), CONTENT), { recursive: true, force: true });

  return {
    /** Removes a repository. An absent repository counts as removed. Concurrent calls remove it once. */
    async remove(id: string): Promise<void> {
      const accountId = await ownerOf(join(root, id));
      await moveAway(id);
      const removeContent = async () => {
        const bytes = await bytesStored(join(removedOf(id), CONTENT));
        await deleteContent(id);
        return bytes;
      };
      await (accountId === null ? removeContent() : quota.free(accountId, removeContent));
    },

    /** Deletes content of interrupted removals, and uploads without a write since `beforeMs` (epoch). */
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
