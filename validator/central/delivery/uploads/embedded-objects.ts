/** The embedded object store: signed URLs, and files on disk, which are stored completely or not at all. */

import { createHmac, timingSafeEqual } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { link, open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Readable } from 'node:stream';
import { ApiError, hasCode } from '#shared/runtime/errors.ts';
import { makeFolder } from '#shared/runtime/files.ts';
import type { Random } from '#shared/runtime/random.ts';
import { deriveKey } from '../../accounts/auth/derived-key.ts';
import type { Upload } from '../../platform/database/tables.ts';

export type ObjectFiles = ReturnType<typeof createObjectFiles>;

/** Creates the store. `folder` is created with the first object. File names contain no text from callers. */
export function createObjectFiles({ folder, random }: { folder: string; random: Random }) {
  /** Path of an object: the key `purpose/id/name` is stored in the file `purpose/id`. */
  function pathOf(key: string): string {
    const [purpose = '', id = ''] = key.split('/');
    return join(folder, purpose, id);
  }

  async function writeBeside(path: string, content: Readable, sizeBytes: number) {
    const file = await open(path, 'wx', 0o600);
    try {
      let written = 0;
      // Stopping early must not destroy the request: the error response uses the same socket.
      for await (const chunk of content.iterator({ destroyOnReturn: false })) {
        written += chunk.length;
        if (written > sizeBytes) requireSize(written, sizeBytes);
        await file.write(chunk);
      }
      requireSize(written, sizeBytes);
      await file.sync();
    } finally {
      await file.close();
    }
  }

  return {
    /**
     * Stores an object. Unless exactly `sizeBytes` arrive, rejects with `bad_request` and stores nothing. Returns false
     * if the object exists; the object is then unchanged.
     */
    async write(key: string, content: Readable, sizeBytes: number): Promise<boolean> {
      const path = pathOf(key);
      const beside = `${path}.${random.uuid()}.part`;
      makeFolder(dirname(path));
      try {
        await writeBeside(beside, content, sizeBytes);
        await link(beside, path);
        return true;
      } catch (error) {
        if (hasCode(error, 'EEXIST')) return false;
        if (content.errored === null) throw error;
        throw new ApiError('bad_request', 'The upload was interrupted', { cause: error });
      } finally {
        await rm(beside, { force: true });
        await syncFolder(dirname(path));
      }
    },

    read: (key: string): Readable => createReadStream(pathOf(key)),

    /** Removes an object; also succeeds if it is absent. */
    remove: (key: string): Promise<void> => rm(pathOf(key), { force: true }),
  };
}

/** Syncs the folder to disk. A new file name is durable only after that. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Throws `bad_request` if the number of bytes is not the expected size. */
export function requireSize(bytes: number, sizeBytes: number): void {
  if (bytes === sizeBytes) return;
  throw new ApiError('bad_request', `The upload has to be exactly ${sizeBytes} bytes`, {
    hint: 'Request a new address with the size of the file.',
  });
}

export type SignedParts = Pick<Upload, 'object_key' | 'content_type' | 'size_bytes'> & {
  /** Unix seconds. */
  expires: number;
};

export type ObjectAddresses = ReturnType<typeof createObjectAddresses>;

/** Signs URLs with HMAC-SHA256 over key, type, size and expiry. */
export function createObjectAddresses({ secret }: { secret: Uint8Array }) {
  const key = deriveKey(secret, 'object-address');

  function signatureOf({ object_key, content_type, size_bytes, expires }: SignedParts): Buffer {
    const text = ['PUT', object_key, content_type, size_bytes, expires].join('\n');
    return createHmac('sha256', key).update(text).digest();
  }

  return {
    /** Returns the path and query of the signed URL. */
    pathOf(parts: SignedParts): string {
      const signature = signatureOf(parts).toString('base64url');
      return `/objects/${parts.object_key}?expires=${parts.expires}&signature=${signature}`;
    },

    /** Returns true if `pathOf` signed exactly these parts. */
    isSigned(parts: SignedParts, signature: string): boolean {
      const actual = Buffer.from(signature, 'base64url');
      const expected = signatureOf(parts);
      return actual.length === expected.length && timingSafeEqual(actual, expected);
    },
  };
}
