/** The embedded `BackupStorage`: repositories on this host's disk or in a bucket, served to restic. */
import { join } from 'node:path';
import { localHostAndPort } from '#shared/http/listen.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import { makeFolder } from '#shared/runtime/files.ts';
import type { ClockTrust } from '#shared/runtime/guarded-clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { startLoop } from '#shared/runtime/loop.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { BackupStorage, BackupFolder as StorageFolder } from '../../platform/ports.ts';
import {
  bytesInBucket,
  bytesOfAccount,
  createBucketRemovals,
  createBucketRepositories,
} from './bucket-repositories.ts';
import { registerRepositoryRoutes } from './repository.routes.ts';
import { createRemovals, createRepositoryService } from './repository.service.ts';
import { createRepositoryCredentials } from './repository-credentials.ts';
import { bytesStored, listRepositories, ownerOf } from './repository-folder.ts';
import { isRepositoryId } from './restic-protocol.ts';
import { createAccountQuota, createDiskReserve, type Space, spaceAt } from './storage-limits.ts';
import { createTransfers, TRANSFER_LIMITS, type TransferLimits } from './transfers.ts';
import { createUploads, type Uploads } from './upload.ts';

const SWEEP_INTERVAL_MS = 3_600_000;
/** Time without a write after which an upload counts as interrupted. */
const ABANDONED_AFTER_MS = 600_000;

/** Place of the repositories and its limits. */
export type BackupFolder = StorageFolder & {
  /** Default: `TRANSFER_LIMITS`. */
  limits?: TransferLimits;
};

export type EmbeddedBackupsDeps = {
  place: BackupFolder;
  secret: Uint8Array;
  clock: Clock;
  random: Random;
  log: Log;
  stopping: AbortSignal;
  /**
   * True if no other process uses the folder. Then every unfinished upload that exists at the start was interrupted.
   */
  isAlone: boolean;
  trust: Pick<ClockTrust, 'isSuspect'>;
  /** Origin at which agents reach this process, such as `https://host`. */
  origin(): string;
};

/**
 * `bytes` is the size of all repositories, null for those in a bucket. The other fields describe the disk of the folder.
 */
export type BackupFill = Space & { bytes: number | null };

export type EmbeddedBackups = Awaited<ReturnType<typeof openEmbeddedBackups>>;

/** Creates the folder, and deletes the remains of interrupted uploads and removals. Serves nothing yet. */
export async function openEmbeddedBackups(deps: EmbeddedBackupsDeps) {
  const { place, clock, random, log, stopping } = deps;
  const { folder: root, spaceOf = spaceAt, limits = TRANSFER_LIMITS } = place;
  const credentials = createRepositoryCredentials({ secret: deps.secret });
  const uploads = createUploads({ random, disk: createDiskReserve(() => spaceOf(root)) });
  const { quota, removals, repositories, bytesOf, countAll } = repositoriesIn(place, uploads);
  makeFolder(root);
  const abandonedBefore = () => clock.now() - ABANDONED_AFTER_MS;
  let countedBytes: number | null = null;
  // A bucket that does not respond must not prevent the start; the hourly sweep tries again.
  if (!deps.trust.isSuspect()) {
    await removals
      .sweep(deps.isAlone ? Number.POSITIVE_INFINITY : abandonedBefore())
      .catch((error: unknown) => log.error({ err: error }, 'backup storage sweep failed'));
  }

  const storage: BackupStorage = {
    async place({ id, accountId }, rights) {
      requireIds(id, accountId);
      const { username, password } = credentials.of({ repositoryId: id, accountId, rights });
      return {
        location: `rest:${deps.origin()}/restic/${id}/`,
        environment: { RESTIC_REST_USERNAME: username, RESTIC_REST_PASSWORD: password },
      };
    },
    async bytesOf(id) {
      requireIds(id);
      return bytesOf(id);
    },
    async remove(id) {
      requireIds(id);
      await removals.remove(id);
    },
  };

  return {
    storage,

    /**
     * Returns the bytes of all repositories as of the last hourly count (null before the first count) and the present
     * state of the disk.
     */
    async fill(): Promise<BackupFill> {
      return { bytes: countedBytes, ...(await spaceOf(root)) };
    },

    /** Registers the routes on the server of the origin. */
    register: (origin: HttpServer) =>
      registerRepositoryRoutes(origin, {
        repositories,
        credentials,
        transfers: createTransfers({ clock, limits, stopping }),
        log,
      }),

    startJobs: (): { stop(): Promise<void> } =>
      startLoop({
        clock,
        intervalMs: SWEEP_INTERVAL_MS,
        async run(signal) {
          if (deps.trust.isSuspect()) return;
          await removals.sweep(abandonedBefore());
          await quota.forgetIdle();
          const bytes = await countAll(signal);
          if (!signal.aborted) countedBytes = bytes;
        },
        onError: (error) => log.error({ err: error }, 'backup folder sweep failed'),
      }),
  };
}

/** `countAll` returns the bytes of all repositories; null in a bucket, whose complete list may take hours. */
function repositoriesIn({ folder: root, bucket, bytesPerAccount }: BackupFolder, uploads: Uploads) {
  const count = (accountId: string) =>
    bucket === undefined
      ? countOf(root, (owner) => owner === accountId)
      : bytesOfAccount(bucket, accountId);
  const quota = createAccountQuota({ limitBytes: bytesPerAccount, count });
  if (bucket === undefined) {
    return {
      quota,
      removals: createRemovals({ root, quota }),
      repositories: createRepositoryService({ root, quota, uploads }),
      bytesOf: (id: string) => bytesStored(join(root, id)),
      countAll: (signal: AbortSignal) => countOf(root, () => true, signal),
    };
  }
  return {
    quota,
    removals: createBucketRemovals({ bucket, folder: root, quota }),
    repositories: createBucketRepositories({ bucket, folder: root, quota, uploads }),
    bytesOf: (id: string) => bytesInBucket(bucket, id),
    countAll: async () => null,
  };
}

/** Validates ids, which become names of folders and users. Throws RangeError for text that is not a UUID. */
function requireIds(...ids: string[]): void {
  if (!ids.every(isRepositoryId)) throw new RangeError('ids must be UUIDs in lower case');
}

/** Returns the charged bytes of the repositories of matching owners. The result is incomplete if the signal aborts. */
async function countOf(
  root: string,
  isOf: (owner: string | null) => boolean,
  signal?: AbortSignal,
): Promise<number> {
  let bytes = 0;
  for (const id of await listRepositories(root)) {
    if (signal?.aborted) break;
    const repository = join(root, id);
    if (isOf(await ownerOf(repository))) bytes += await bytesStored(repository);
  }
  return bytes;
}

/**
 * Returns the origin of the first listener, `http://host:port`, for an API without a public origin. Throws before the
 * server listens.
 */
export function listeningOrigin(server: HttpServer): string {
  const [listener] = server.addresses();
  if (typeof listener !== 'object') throw new Error('the central API does not listen yet');
  return `http://${localHostAndPort(listener.address, listener.port)}`;
}
