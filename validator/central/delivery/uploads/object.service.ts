/** Uploads through signed URLs, to the embedded object store or an external one. */
import type { Readable } from 'node:stream';
import { type Clock, naiveUtc } from '#shared/runtime/clock.ts';
import { ApiError, invalidField } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { lockAccount } from '../../accounts/auth/account-access.ts';
import type { Database, Db, Upload } from '../../platform/database/tables.ts';
import type { ObjectStore, RemoteObjects } from '../../platform/ports.ts';
import { createObjectAddresses, createObjectFiles, requireSize } from './embedded-objects.ts';
import { type FileInput, type PresignedUpload, UPLOAD_TYPES } from './object.schemas.ts';
import {
  countUploads,
  deleteUpload,
  findUpload,
  insertUpload,
  listLeftoverUploads,
  markStored,
  type UploadQuery,
  uploadedBy,
} from './object.store.ts';

const ADDRESS_LIFETIME_S = 900;
const MAX_BYTES_PER_ACCOUNT = 200 * 1024 * 1024;
const MAX_UPLOADS_PER_ACCOUNT = 1_000;
/** Extra time after the URL's expiry for uploads that started before it. */
const GRACE_MS = 60_000;
const SWEEP_BATCH = 500;
const MAX_NAME_CHARS = 100;

export type ObjectsDeps = {
  db: Database;
  clock: Clock;
  random: Random;
  secret: Uint8Array;
  store: ObjectStore | null;
};

export type Objects = ReturnType<typeof createObjects>;

export function createObjects({ db, clock, random, secret, store }: ObjectsDeps) {
  const addresses = createObjectAddresses({ secret });
  const remote: RemoteObjects | null = store !== null && !('folder' in store) ? store : null;
  const files =
    store !== null && 'folder' in store
      ? createObjectFiles({ folder: store.folder, random })
      : null;

  async function reserve(accountId: string, file: FileInput): Promise<Upload> {
    const nowMs = clock.now();
    const upload: Upload = {
      object_key: `${file.purpose}/${random.uuid()}/${safeName(file.file_name)}`,
      account_id: accountId,
      purpose: file.purpose,
      content_type: file.content_type,
      size_bytes: file.size_bytes,
      created_at: nowMs,
      expires_at: nowMs + ADDRESS_LIFETIME_S * 1_000,
      stored_at: null,
    };
    await db.transaction().execute(async (tx) => {
      await lockAccount(tx, { accountId });
      const { bytes, count } = await uploadedBy(tx, accountId);
      if (bytes + file.size_bytes > MAX_BYTES_PER_ACCOUNT || count >= MAX_UPLOADS_PER_ACCOUNT) {
        throw new ApiError('bad_request', 'The uploads of this account would exceed the limit');
      }
      await insertUpload(tx, upload);
    });
    return upload;
  }

  function embeddedAddress(upload: Upload, origin: string) {
    const parts = { ...upload, expires: Math.floor(upload.expires_at / 1_000) };
    return {
      url: `${origin}${addresses.pathOf(parts)}`,
      headers: { 'Content-Type': upload.content_type },
      publicUrl: upload.purpose === 'avatar' ? `${origin}/objects/${upload.object_key}` : null,
    };
  }

  async function removeObject(key: string): Promise<void> {
    await files?.remove(key);
    await remote?.remove(key);
  }

  return {
    /** True if this process stores and serves the objects. */
    isEmbedded: files !== null,

    /** Returns a URL for one upload of exactly this file. `origin` is the API's origin. */
    async presign(accountId: string, file: FileInput, origin: string): Promise<PresignedUpload> {
      if (files === null && remote === null) {
        throw new ApiError('bad_request', 'Uploads are not configured on this server');
      }
      const types: readonly string[] = UPLOAD_TYPES[file.purpose];
      if (!types.includes(file.content_type)) {
        throw invalidField('body.content_type', `One of ${types.join(', ')} for ${file.purpose}`);
      }
      const upload = await reserve(accountId, file);
      const { url, headers, publicUrl } =
        remote === null
          ? embeddedAddress(upload, origin)
          : await remote.sign({
              key: upload.object_key,
              contentType: upload.content_type,
              sizeBytes: upload.size_bytes,
              lifetimeS: ADDRESS_LIFETIME_S,
            });
      return {
        upload_url: url,
        method: 'PUT',
        headers,
        object_key: upload.object_key,
        public_url: upload.purpose === 'avatar' ? publicUrl : null,
        expires_at: naiveUtc(upload.expires_at),
      };
    },

    /** Stores an upload. Throws `forbidden` for an unsigned or expired URL before reading the content. */
    async put(
      key: string,
      proof: { expires: number; signature: string },
      sent: { contentType: string; content: Readable; statedBytes: number | null },
    ): Promise<void> {
      if (files === null) throw notFound();
      const upload = await findUpload(db, key);
      const parts = upload === undefined ? null : { ...upload, expires: proof.expires };
      if (upload === undefined || parts === null || !addresses.isSigned(parts, proof.signature)) {
        throw new ApiError('forbidden', 'The address was not signed by this service');
      }
      if (proof.expires * 1_000 <= clock.now()) {
        throw new ApiError('forbidden', 'The address has expired');
      }
      if (sent.contentType !== upload.content_type) {
        throw new ApiError('bad_request', `The upload has to be of type ${upload.content_type}`);
      }
      if (upload.stored_at !== null) throw usedAlready();
      if (sent.statedBytes !== null) requireSize(sent.statedBytes, upload.size_bytes);
      if (!(await files.write(key, sent.content, upload.size_bytes))) throw usedAlready();
      await markStored(db, key, clock.now());
    },

    /** Opens an uploaded avatar. Objects with other purposes cannot be read. */
    async open(key: string): Promise<{ upload: Upload; content: Readable }> {
      const upload = await findUpload(db, key);
      if (files === null || upload?.purpose !== 'avatar' || upload.stored_at === null) {
        throw notFound();
      }
      return { upload, content: files.read(key) };
    },

    /** Removes objects of deleted accounts and unused expired uploads: the object first, then its row. */
    async sweep(): Promise<void> {
      const leftovers = await listLeftoverUploads(db, {
        expiredBeforeMs: clock.now() - GRACE_MS,
        // An external store does not report uploads, so every URL counts as used.
        withUnused: remote === null,
        limit: SWEEP_BATCH,
      });
      for (const { object_key: key } of leftovers) {
        await removeObject(key);
        await deleteUpload(db, key);
      }
    },
  };
}

/**
 * Returns true if all keys are uploads of the account for this purpose. With `arrived`, the uploads must also have been
 * received.
 */
export async function hasUploads(
  tx: Db,
  { keys, ...query }: UploadQuery & { keys: readonly string[] },
): Promise<boolean> {
  return keys.length === 0 || (await countUploads(tx, keys, query)) === keys.length;
}

/** Last part of a key: the file name, reduced to safe characters. */
function safeName(fileName: string): string {
  const plain = fileName
    .replace(/[^A-Za-z0-9._-]+/g, '-')
    .replace(/^[.-]+/, '')
    .slice(-MAX_NAME_CHARS);
  return plain === '' ? 'file' : plain;
}

function notFound(): ApiError {
  return new ApiError('not_found', 'There is nothing at this path');
}

function usedAlready(): ApiError {
  return new ApiError('conflict', 'This address has been used', {
    hint: 'Request a new address with POST /users/presigned-url.',
  });
}
