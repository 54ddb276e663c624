/** Repositories of backups on this machine's disk, served to restic: the embedded `BackupStorage`. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { HttpServer } from '#shared/http/server.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import { startLoop } from '#shared/runtime/loop.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { BackupStorage } from '../../platform/ports.ts';
import { createAccountUsage } from './account-usage.ts';
import { createDiskRoom, type Space, spaceAt } from './disk-room.ts';
import { createRemovals } from './repository.removal.ts';
import { registerRepositoryRoutes } from './repository.routes.ts';
import { createRepositories } from './repository.service.ts';
import { createRepositoryCredentials } from './repository-credentials.ts';
import { bytesStored, listRepositories, ownerOf } from './repository-folder.ts';
import { isRepositoryId } from './restic-path.ts';
import { createTransfers, TRANSFER_LIMITS, type TransferLimits } from './transfers.ts';
import { createUploads } from './upload.ts';

const SWEEP_INTERVAL_MS = 3_600_000;
/** An upload that stood still for so long was cut long ago, whichever process took it. */
const LEFT_OVER_AFTER_MS = 600_000;

/** A folder of ours for repositories; served to restic at our own origin. */
export type BackupFolder = {
  folder: string;
  /** Of one account's repositories together. */
  bytesPerAccount: number;
  /** Of the file system under a folder; the system's own words when absent. */
  spaceOf?(folder: string): Promise<Space>;
  /** Of requests; the usual ones when absent. */
  limits?: TransferLimits;
};

export type EmbeddedBackupsDeps = {
  place: BackupFolder;
  secret: Uint8Array;
  clock: Clock;
  random: Random;
  log: Log;
  stopping: AbortSignal;
  /** Nobody else has the folder: what is half there when we start was left by a kill. */
  isAlone: boolean;
  /** `https://host`: how agents reach us, as long as we serve. */
  origin(): string;
};

/** Bytes; `bytes` of repositories, the rest of the disk that they lie on. */
export type BackupFill = Space & { bytes: number | null };

export type EmbeddedBackups = Awaited<ReturnType<typeof openEmbeddedBackups>>;

/** Makes the folder and sweeps it; nothing is served yet. */
export async function openEmbeddedBackups(deps: EmbeddedBackupsDeps) {
  const { place, clock, random, log, stopping } = deps;
  const { folder: root, bytesPerAccount, spaceOf = spaceAt, limits = TRANSFER_LIMITS } = place;
  const credentials = createRepositoryCredentials({ secret: deps.secret });
  const usage = createAccountUsage({
    limitBytes: bytesPerAccount,
    count: (accountId) => countOf(root, (owner) => owner === accountId),
  });
  const removals = createRemovals({ root, usage });
  const uploads = createUploads({ random, disk: createDiskRoom(() => spaceOf(root)) });
  await mkdir(root, { recursive: true, mode: 0o700 });
  const leftOverBefore = () => clock.now() - LEFT_OVER_AFTER_MS;
  let countedBytes: number | null = null;
  await removals.sweep(deps.isAlone ? Number.POSITIVE_INFINITY : leftOverBefore());

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
      return bytesStored(join(root, id));
    },
    async remove(id) {
      requireIds(id);
      await removals.remove(id);
    },
  };

  return {
    storage,

    /** What all repositories here take, as of the last hourly count (null before it), and the disk as it is now. */
    async fill(): Promise<BackupFill> {
      return { bytes: countedBytes, ...(await spaceOf(root)) };
    },

    /** Routes at the origin. */
    register: (origin: HttpServer) =>
      registerRepositoryRoutes(origin, {
        repositories: createRepositories({ root, usage, uploads }),
        credentials,
        transfers: createTransfers({ clock, limits, stopping }),
        log,
      }),

    startJobs: (): { stop(): Promise<void> } =>
      startLoop({
        clock,
        intervalMs: SWEEP_INTERVAL_MS,
        async run(signal) {
          await removals.sweep(leftOverBefore());
          await usage.forgetIdle();
          const bytes = await countOf(root, () => true, signal);
          if (!signal.aborted) countedBytes = bytes;
        },
        onError: (error) => log.error({ err: error }, 'sweeping the folder of backups failed'),
      }),
  };
}

/** Ids of ours become names of folders and users: nothing else may. Throws RangeError. */
function requireIds(...ids: string[]): void {
  if (!ids.every(isRepositoryId)) throw new RangeError('ids are UUIDs in lower case');
}

/** Charged bytes of the repositories of those owners; of some of them alone once the signal aborts. */
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
