/** Receives one file. The file is stored completely, verified and synced, or not at all. The content is streamed. */
import { createHash } from 'node:crypto';
import { type FileHandle, link, open, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { hasCode } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { makeDataFolder, pathOf, sizeOf, syncFolder, unlessAbsent } from './repository-folder.ts';
import {
  isKey,
  isSmallFile,
  MAX_SMALL_FILE_BYTES,
  requireKeyFormat,
  requireSealedSize,
} from './restic-format.ts';
import { notFound, type RepositoryFile, ResticRefusal } from './restic-protocol.ts';
import { type DiskReserve, diskFull, type Reservation } from './storage-limits.ts';

/** Maximum size of a file; restic's packs have 16 MiB by default and at most 128 MiB. */
export const MAX_FILE_BYTES = 512 * 1024 * 1024;
/** Received bytes after which the free space is checked again. */
const CHECK_EVERY_BYTES = 16 * 1024 * 1024;
const FILE_MODE = 0o600;

/** `declaredBytes`: the Content-Length, or null. */
export type Content = { stream: Readable; declaredBytes: number | null };

/** `max`: maximum size of the file in bytes. */
type Bounds = { reservation: Reservation; max: number };

export type Uploads = ReturnType<typeof createUploads>;

export function createUploads({ random, disk }: { random: Random; disk: DiskReserve }) {
  /**
   * Copies the content and returns its bytes and SHA-256. Reserves the bytes that exceed the declared length as they
   * arrive.
   */
  async function copy(
    { stream, declaredBytes }: Content,
    file: FileHandle,
    { reservation, max }: Bounds,
  ) {
    const hash = createHash('sha256');
    let bytes = 0;
    let reserved = declaredBytes ?? 0;
    let checkAt = CHECK_EVERY_BYTES;
    // Stopping early must not destroy the stream: the error response uses the same socket.
    for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
      bytes += chunk.length;
      if (bytes > max) throw tooLarge(max);
      if (bytes > reserved) {
        reservation.reserve(bytes - reserved);
        reserved = bytes;
      }
      if (bytes >= checkAt) {
        await disk.requireFor(0);
        checkAt += CHECK_EVERY_BYTES;
      }
      hash.update(chunk);
      await writeWhole(file, chunk);
    }
    return { bytes, sha256: hash.digest('hex') };
  }

  async function receiveTo(temporary: string, content: Content, bounds: Bounds) {
    const file = await open(temporary, 'wx', FILE_MODE).catch((error: unknown) => {
      throw hasCode(error, 'ENOENT') ? notFound() : error;
    });
    try {
      const received = await copy(content, file, bounds);
      await file.sync();
      return received;
    } catch (error) {
      if (content.stream.errored === null) throw error;
      throw new ResticRefusal(400, 'The upload was cut off');
    } finally {
      await file.close();
    }
  }

  return {
    /**
     * Receives a file into `folder`, verifies it, and passes it to `store`; deletes it afterwards. Throws 400 if the
     * hash of an object differs from its name or restic cannot have written the file, 404 if the folder does not exist,
     * 413 above the maximum size, and 507 above the quota or below the reserve of the disk.
     */
    async receive<T>(
      { folder, file }: { folder: string; file: RepositoryFile },
      content: Content,
      reservation: Reservation,
      store: (received: { temporary: string; bytes: number }) => Promise<T>,
    ): Promise<T> {
      const max = isSmallFile(file) ? MAX_SMALL_FILE_BYTES : MAX_FILE_BYTES;
      if ((content.declaredBytes ?? 0) > max) throw tooLarge(max);
      reservation.reserve(content.declaredBytes ?? 0);
      await disk.requireFor(content.declaredBytes ?? 0);
      const temporary = join(folder, random.uuid());
      try {
        const { bytes, sha256 } = await receiveTo(temporary, content, { reservation, max });
        if (file !== 'config' && sha256 !== file.name) {
          throw new ResticRefusal(400, 'The hash of the content differs from its name');
        }
        requireSealedSize(file, bytes);
        if (isKey(file)) requireKeyFormat(await readFile(temporary));
        return await store({ temporary, bytes });
      } catch (error) {
        throw hasCode(error, 'ENOSPC') || hasCode(error, 'EDQUOT') ? diskFull() : error;
      } finally {
        await rm(temporary, { force: true });
      }
    },
  };
}

/**
 * Moves a received file to its place in the repository. Returns false if the same file already exists, as after a lost
 * answer. Throws 403 if another file has the name, and 404 if the repository does not exist.
 */
export async function placeFile(
  repository: string,
  file: RepositoryFile,
  temporary: string,
): Promise<boolean> {
  const path = join(repository, pathOf(file));
  if (await linkInto(path, temporary)) return true;
  await requireSame(path, temporary, file);
  return false;
}

/** Returns false if the file exists; nothing is overwritten. Throws 404 if the repository does not exist. */
async function linkInto(path: string, temporary: string): Promise<boolean> {
  const folder = dirname(path);
  let outcome = await linkOnce(temporary, path);
  if (outcome === 'ENOENT' && (await makeDataFolder(folder)))
    outcome = await linkOnce(temporary, path);
  if (outcome === 'ENOENT') throw notFound();
  if (outcome === 'EEXIST') return false;
  // The repository was removed in the meantime.
  if ((await unlessAbsent(syncFolder(folder).then(() => true))) === null) throw notFound();
  return true;
}

async function linkOnce(from: string, to: string): Promise<'done' | 'EEXIST' | 'ENOENT'> {
  try {
    await link(from, to);
    return 'done';
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return 'EEXIST';
    if (hasCode(error, 'ENOENT')) return 'ENOENT';
    throw error;
  }
}

/**
 * Throws 403 for another file. Objects with the same name have the same hash, so their sizes are compared; for
 * configurations, the contents are compared.
 */
async function requireSame(path: string, temporary: string, file: RepositoryFile): Promise<void> {
  const same =
    (await sizeOf(path)) === (await sizeOf(temporary)) &&
    (file !== 'config' || (await readFile(path)).equals(await readFile(temporary)));
  if (!same) throw otherFile();
}

export function otherFile(): ResticRefusal {
  return new ResticRefusal(403, 'The file exists already and is not overwritten');
}

async function writeWhole(file: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let written = 0; written < chunk.length; ) {
    written += (await file.write(chunk, written)).bytesWritten;
  }
}

function tooLarge(max: number): ResticRefusal {
  return new ResticRefusal(413, `This file has at most ${max} bytes`);
}
