/**
 * Repositories in a bucket, with the rights and quotas of repositories on disk. Nodes never receive a credential of the
 * bucket. Objects have the names that restic itself uses in a bucket:
 *
 * - `<repository>/config`, `<repository>/keys/<name>`, `<repository>/data/<two digits>/<name>` …: files of restic
 * - `accounts/<account>/<repository>`: empty; the repositories that count against the quota of the account
 * - `removed/<repository>`: empty; the repository was removed, and its id is never used again
 * - `removing/<repository>`: empty; its objects are being deleted
 */
import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { ObjectBucket } from '../../platform/ports.ts';
import { type RepositoryKeys, storeWithOnlyKey } from './only-key.ts';
import type { RepositoryService } from './repository.service.ts';
import { assertMayRemove, type Grant } from './repository-credentials.ts';
import { pathOf, unlessAbsent } from './repository-folder.ts';
import {
  byteRangeOf,
  isRepositoryId,
  notFound,
  type ObjectType,
  type RepositoryFile,
  ResticRefusal,
} from './restic-protocol.ts';
import { type AccountQuota, chargedBytes } from './storage-limits.ts';
import { otherFile, type Uploads } from './upload.ts';

/** Number of objects that are deleted at a time. */
const DELETED_AT_ONCE = 8;

const removedKey = (id: string) => `removed/${id}`;
const removingKey = (id: string) => `removing/${id}`;
const accountPrefix = (accountId: string) => `accounts/${accountId}/`;
const keyOf = ({ repositoryId }: Grant, file: RepositoryFile) => `${repositoryId}/${pathOf(file)}`;
const lastPart = (key: string) => key.slice(key.lastIndexOf('/') + 1);

/** Returns the charged bytes of a repository; 0 if it is absent. */
export async function bytesInBucket(bucket: ObjectBucket, id: string): Promise<number> {
  let sum = 0;
  for await (const objects of bucket.list(`${id}/`)) {
    for (const { bytes } of objects) sum += chargedBytes(bytes);
  }
  return sum;
}

/** Returns the charged bytes of all repositories of an account. */
export async function bytesOfAccount(bucket: ObjectBucket, accountId: string): Promise<number> {
  let sum = 0;
  for await (const markers of bucket.list(accountPrefix(accountId))) {
    for (const { key } of markers) sum += await bytesInBucket(bucket, lastPart(key));
  }
  return sum;
}

export type BucketDeps = {
  bucket: ObjectBucket;
  /** Folder for uploads until they are complete and verified. */
  folder: string;
  quota: AccountQuota;
  uploads: Uploads;
};

/** The methods throw `notFound()` for missing files and removed repositories, except `remove`. */
export function createBucketRepositories(deps: BucketDeps): RepositoryService {
  const { bucket, folder, quota, uploads } = deps;

  async function requirePresent({ repositoryId }: Grant): Promise<void> {
    if ((await bucket.size(removedKey(repositoryId))) !== null) throw notFound();
  }

  async function sizeOf(grant: Grant, file: RepositoryFile): Promise<number> {
    const size = await bucket.size(keyOf(grant, file));
    if (size === null) throw notFound();
    return size;
  }

  /** Counts the repository against the quota of the account from now on. */
  async function addToAccount({ accountId, repositoryId }: Grant): Promise<void> {
    await bucket.create(accountPrefix(accountId) + repositoryId, null);
  }

  /** Returns false if the same file already exists, as after a lost answer. Throws 403 if another has the name. */
  async function store(
    grant: Grant,
    file: RepositoryFile,
    received: { temporary: string; bytes: number },
  ): Promise<boolean> {
    const key = keyOf(grant, file);
    const known = await bucket.size(key);
    const content = { file: received.temporary, bytes: received.bytes };
    if (known === null && (await bucket.create(key, content))) return true;
    const isSame =
      ((await bucket.size(key)) ?? -1) === received.bytes &&
      (file !== 'config' || (await hasContent(key, received.temporary)));
    if (!isSame) throw otherFile();
    return false;
  }

  async function hasContent(key: string, file: string): Promise<boolean> {
    const stream = await bucket.read(key, null);
    if (stream === null) return false;
    return Buffer.concat(await stream.toArray()).equals(await readFile(file));
  }

  function keysOf(grant: Grant): RepositoryKeys {
    const prefix = `${grant.repositoryId}/keys/`;
    return {
      isInitialised: async () => (await bucket.size(keyOf(grant, 'config'))) !== null,
      async names() {
        const names: string[] = [];
        for await (const objects of bucket.list(prefix)) {
          names.push(...objects.map(({ key }) => lastPart(key)));
        }
        return names;
      },
      remove: (name) => bucket.remove(prefix + name),
    };
  }

  async function* listing({ repositoryId }: Grant, type: ObjectType, withSizes: boolean) {
    let lead = '[';
    for await (const objects of bucket.list(`${repositoryId}/${type}/`)) {
      if (objects.length === 0) continue;
      const entries = objects.map(({ key, bytes }) => {
        const name = lastPart(key);
        return JSON.stringify(withSizes ? { name, size: bytes } : name);
      });
      yield lead + entries.join(',');
      lead = ',';
    }
    yield lead === '[' ? '[]' : ']';
  }

  return {
    async create(grant) {
      await requirePresent(grant);
      await addToAccount(grant);
    },

    async list(grant, type, withSizes) {
      await requirePresent(grant);
      return Readable.from(listing(grant, type, withSizes), { objectMode: false });
    },

    size: sizeOf,

    async read(grant, file, rangeHeader) {
      const sizeBytes = await sizeOf(grant, file);
      const range = byteRangeOf(rangeHeader, sizeBytes);
      if (range === 'unsatisfiable') throw new ResticRefusal(416, 'The range is beyond the end');
      const stream = await bucket.read(keyOf(grant, file), range);
      if (stream === null) throw notFound();
      return { sizeBytes, range, stream };
    },

    async write(grant, file, content) {
      await requirePresent(grant);
      await addToAccount(grant);
      const reservation = await quota.open(grant.accountId);
      try {
        await uploads.receive({ folder, file }, content, reservation, async (received) => {
          const isNew = await storeWithOnlyKey(file, keysOf(grant), () =>
            store(grant, file, received),
          );
          // A removal first stores its mark and then lists the objects, so it may have missed this object.
          if ((await bucket.size(removedKey(grant.repositoryId))) !== null) {
            await bucket.remove(keyOf(grant, file));
            throw notFound();
          }
          if (isNew) reservation.commit(received.bytes);
          else reservation.release();
        });
      } catch (error) {
        reservation.release();
        throw error;
      }
    },

    async remove(grant, file) {
      assertMayRemove(grant, file);
      const key = keyOf(grant, file);
      await quota.free(grant.accountId, async () => {
        const size = await bucket.size(key);
        await bucket.remove(key);
        return size === null ? 0 : chargedBytes(size);
      });
    },
  };
}

export function createBucketRemovals({
  bucket,
  folder,
  quota,
}: Pick<BucketDeps, 'bucket' | 'folder' | 'quota'>) {
  async function deleteContent(id: string): Promise<void> {
    for await (const objects of bucket.list(`${id}/`)) {
      for (let at = 0; at < objects.length; at += DELETED_AT_ONCE) {
        const some = objects.slice(at, at + DELETED_AT_ONCE);
        await Promise.all(some.map(({ key }) => bucket.remove(key)));
      }
    }
    await bucket.remove(removingKey(id));
  }

  /** Deletes files of uploads without a write since `beforeMs` (epoch). */
  async function deleteAbandoned(beforeMs: number): Promise<void> {
    for (const name of (await unlessAbsent(readdir(folder))) ?? []) {
      const file = await unlessAbsent(stat(join(folder, name)));
      if (isRepositoryId(name) && file !== null && file.mtimeMs < beforeMs) {
        await rm(join(folder, name), { force: true });
      }
    }
  }

  return {
    /** Removes a repository. An absent repository counts as removed. A kill leaves the rest to `sweep`. */
    async remove(id: string): Promise<void> {
      await bucket.create(removingKey(id), null);
      await bucket.create(removedKey(id), null);
      await deleteContent(id);
      // The accounts are counted again, because the bucket does not state whose repository it was.
      await quota.forgetIdle();
    },

    /** Completes interrupted removals, and deletes uploads without a write since `beforeMs` (epoch). */
    async sweep(beforeMs: number): Promise<void> {
      await deleteAbandoned(beforeMs);
      for await (const markers of bucket.list('removing/')) {
        for (const { key } of markers) {
          await bucket.create(removedKey(lastPart(key)), null);
          await deleteContent(lastPart(key));
        }
      }
    },
  };
}
