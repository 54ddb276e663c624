/** Taking in one file: whole, checked and on disk, or not there at all. Its content is never in memory. */
import { createHash } from 'node:crypto';
import { type FileHandle, link, open, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import type { Random } from '#shared/runtime/random.ts';
import type { Room } from './account-usage.ts';
import { type DiskRoom, diskFull } from './disk-room.ts';
import {
  arrivingIn,
  isCode,
  makeDataFolder,
  pathOf,
  sizeOf,
  syncFolder,
  unlessAbsent,
} from './repository-folder.ts';
import type { RepositoryFile } from './restic-path.ts';
import { absent, ResticRefusal } from './restic-refusal.ts';

/** Of one file; packs of restic have 16 MiB, 128 MiB at most. */
export const MAX_FILE_BYTES = 512 * 1024 * 1024;
/** restic's has less than a KiB; two are compared in memory. */
const MAX_CONFIG_BYTES = 64 * 1024;
/** The disk's free space is looked at again after so many bytes. */
const LOOK_EVERY_BYTES = 16 * 1024 * 1024;
const FILE_MODE = 0o600;

/** `statedBytes`: its Content-Length; null when it was not told. */
export type Content = { stream: Readable; statedBytes: number | null };

/** `max`: bytes of the file. */
type Bounds = { room: Room; max: number };

export type Uploads = ReturnType<typeof createUploads>;

export function createUploads({ random, disk }: { random: Random; disk: DiskRoom }) {
  /** Bytes and their SHA-256. Sets aside what was stated at once, the rest as it comes. */
  async function copy({ stream, statedBytes }: Content, file: FileHandle, { room, max }: Bounds) {
    const hash = createHash('sha256');
    let bytes = 0;
    let reserved = statedBytes ?? 0;
    let lookAt = LOOK_EVERY_BYTES;
    // Not destroyed when we stop early: the refusal has to travel back over the same socket.
    for await (const chunk of stream.iterator({ destroyOnReturn: false })) {
      bytes += chunk.length;
      if (bytes > max) throw tooLarge(max);
      if (bytes > reserved) {
        room.take(bytes - reserved);
        reserved = bytes;
      }
      if (bytes >= lookAt) {
        await disk.requireFor(0);
        lookAt += LOOK_EVERY_BYTES;
      }
      hash.update(chunk);
      await writeWhole(file, chunk);
    }
    return { bytes, sha256: hash.digest('hex') };
  }

  async function receive(content: Content, beside: string, bounds: Bounds) {
    const file = await open(beside, 'wx', FILE_MODE).catch((error: unknown) => {
      throw isCode(error, 'ENOENT') ? absent() : error;
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
     * Stores it and returns its bytes; null when the very same was there already, as after an answer that got lost.
     * Throws 400 for an object that is not what its name says, 403 where something else is, 404 without a
     * repository, 413 and 507 for what there is no room for.
     */
    async take(
      repository: string,
      file: RepositoryFile,
      content: Content,
      room: Room,
    ): Promise<number | null> {
      const max = file === 'config' ? MAX_CONFIG_BYTES : MAX_FILE_BYTES;
      if ((content.statedBytes ?? 0) > max) throw tooLarge(max);
      room.take(content.statedBytes ?? 0);
      await disk.requireFor(content.statedBytes ?? 0);
      const path = join(repository, pathOf(file));
      const beside = join(arrivingIn(repository), random.uuid());
      try {
        const { bytes, sha256 } = await receive(content, beside, { room, max });
        if (file !== 'config' && sha256 !== file.name) {
          throw new ResticRefusal(400, 'The content does not have the hash that its name states');
        }
        if (!(await putInPlace(beside, path))) {
          await requireSame(path, beside, file);
          return null;
        }
        return bytes;
      } catch (error) {
        throw isCode(error, 'ENOSPC') || isCode(error, 'EDQUOT') ? diskFull() : error;
      } finally {
        await rm(beside, { force: true });
      }
    },
  };
}

/** False when there is a file already: nothing is ever overwritten. Throws 404 without the repository. */
async function putInPlace(beside: string, path: string): Promise<boolean> {
  const folder = dirname(path);
  let outcome = await linkOnce(beside, path);
  if (outcome === 'ENOENT' && (await makeDataFolder(folder)))
    outcome = await linkOnce(beside, path);
  if (outcome === 'ENOENT') throw absent();
  if (outcome === 'EEXIST') return false;
  // Removed together with its repository, just now.
  if ((await unlessAbsent(syncFolder(folder).then(() => true))) === null) throw absent();
  return true;
}

async function linkOnce(from: string, to: string): Promise<'done' | 'EEXIST' | 'ENOENT'> {
  try {
    await link(from, to);
    return 'done';
  } catch (error) {
    if (isCode(error, 'EEXIST')) return 'EEXIST';
    if (isCode(error, 'ENOENT')) return 'ENOENT';
    throw error;
  }
}

/** An object's new content is known by its hash: of the old one its size tells enough. Configurations are compared. */
async function requireSame(path: string, beside: string, file: RepositoryFile): Promise<void> {
  const same =
    (await sizeOf(path)) === (await sizeOf(beside)) &&
    (file !== 'config' || (await readFile(path)).equals(await readFile(beside)));
  if (!same) throw new ResticRefusal(403, 'It is there already, and is not overwritten');
}

async function writeWhole(file: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let written = 0; written < chunk.length; ) {
    written += (await file.write(chunk, written)).bytesWritten;
  }
}

function tooLarge(max: number): ResticRefusal {
  return new ResticRefusal(413, `This file has at most ${max} bytes`);
}
