/** What restic may do in a repository: the rules of its REST protocol, append-only for those who may only append. */
import { type FileHandle, open, readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { type AccountUsage, chargedBytes } from './account-usage.ts';
import { type ByteRange, byteRangeOf } from './byte-range.ts';
import type { Grant } from './repository-credentials.ts';
import {
  foldersOf,
  makeRepository,
  pathOf,
  REMOVED,
  sizeOf,
  syncFolder,
  unlessAbsent,
} from './repository-folder.ts';
import type { ObjectType, RepositoryFile } from './restic-path.ts';
import { absent, ResticRefusal } from './restic-refusal.ts';
import type { Content, Uploads } from './upload.ts';

const NAME = /^[0-9a-f]{64}$/;

export type Reading = { sizeBytes: number; range: ByteRange | null; stream: Readable };

export type Repositories = ReturnType<typeof createRepositories>;

export type RepositoriesDeps = { root: string; usage: AccountUsage; uploads: Uploads };

/** Every call takes what its caller was granted; the protocol's 404 is `absent()`. */
export function createRepositories({ root, usage, uploads }: RepositoriesDeps) {
  const folderOf = ({ repositoryId }: Grant) => join(root, repositoryId);
  const at = (grant: Grant, file: RepositoryFile) => join(folderOf(grant), pathOf(file));

  /** JSON of one folder after another, so that no long list is ever whole in memory. */
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

  return {
    /** Makes the folders; a repository that was removed never comes back. */
    async create(grant: Grant): Promise<void> {
      const wasRemoved = async () =>
        (await sizeOf(join(root, REMOVED, grant.repositoryId))) !== null;
      if (await wasRemoved()) throw absent();
      await makeRepository(folderOf(grant), grant.accountId);
      // In between: a removal marks first and takes away then, and may have come too early for these folders.
      if (await wasRemoved()) {
        await rm(folderOf(grant), { recursive: true, force: true });
        throw absent();
      }
    },

    /** `withSizes`: `[{name, size}]` of API v2, else the names of v1. */
    async list(grant: Grant, type: ObjectType, withSizes: boolean): Promise<Readable> {
      const repository = folderOf(grant);
      if ((await sizeOf(join(repository, type))) === null) throw absent();
      return Readable.from(listing(repository, type, withSizes), { objectMode: false });
    },

    async size(grant: Grant, file: RepositoryFile): Promise<number> {
      const size = await sizeOf(at(grant, file));
      if (size === null) throw absent();
      return size;
    },

    /** Throws 416 for a range beyond its end. */
    async read(grant: Grant, file: RepositoryFile, rangeHeader?: string): Promise<Reading> {
      const handle = await unlessAbsent(open(at(grant, file), 'r'));
      if (handle === null) throw absent();
      try {
        return await readingOf(handle, rangeHeader);
      } catch (error) {
        await handle.close();
        throw error;
      }
    },

    async write(grant: Grant, file: RepositoryFile, content: Content): Promise<void> {
      const room = await usage.room(grant.accountId);
      try {
        const bytes = await uploads.take(folderOf(grant), file, content, room);
        if (bytes === null) room.drop();
        else room.keep(bytes);
      } catch (error) {
        room.drop();
        throw error;
      }
    },

    /**
     * What is gone already counts as removed: its answer may have been lost, and restic asks for up to a quarter of an
     * hour until it has one. Throws 403 without `full` rights for anything but locks: whoever has a node may not take
     * its backups away.
     */
    async remove(grant: Grant, file: RepositoryFile): Promise<void> {
      const isLock = file !== 'config' && file.type === 'locks';
      if (grant.rights !== 'full' && !isLock) {
        throw new ResticRefusal(403, 'This credential may only append');
      }
      const path = at(grant, file);
      await usage.free(grant.accountId, async () => {
        const size = await sizeOf(path);
        const wasThere = size !== null && (await unlessAbsent(rm(path).then(() => true))) !== null;
        if (!wasThere) return 0;
        await syncFolder(dirname(path));
        return chargedBytes(size);
      });
    },
  };
}

/** Without those that were removed since the folder was read. */
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
