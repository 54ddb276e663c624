/**
 * Formats of restic's files, as far as a server without the password can verify them. restic fails, or even crashes, on
 * a key or a short file that restic did not write, so one such file would make every backup of the repository useless.
 * Pure.
 */
import { z } from 'zod';
import { type RepositoryFile, ResticRefusal } from './restic-protocol.ts';

/** restic seals every file except keys: 16 bytes of IV before the content, and 16 bytes of MAC behind it. */
const SEAL_BYTES = 32;
const MIN_SEALED_BYTES = SEAL_BYTES + 1;
/** Maximum size of a configuration or a key; restic's are below 1 KiB. The server reads both into memory. */
export const MAX_SMALL_FILE_BYTES = 64 * 1024;

/** Bounds of scrypt's cost: restic uses 60 MiB of memory. */
const MAX_SCRYPT_BYTES = 1024 ** 3;
const MAX_SCRYPT_PASSES = 1_024;
const MAX_NAME_CHARS = 1_024;
const MAX_BASE64_CHARS = 4_096;

const base64Bytes = (text: string) => Buffer.from(text, 'base64').length;
const positive = (max: number) => z.number().int().min(1).max(max);

const ResticKey = z
  .object({
    created: z.string().max(64),
    username: z.string().max(MAX_NAME_CHARS).optional(),
    hostname: z.string().max(MAX_NAME_CHARS).optional(),
    kdf: z.literal('scrypt'),
    N: positive(MAX_SCRYPT_BYTES).refine((cost) => cost > 1 && Number.isInteger(Math.log2(cost))),
    r: positive(MAX_SCRYPT_BYTES),
    p: positive(MAX_SCRYPT_PASSES),
    salt: z.base64().max(MAX_BASE64_CHARS),
    data: z.base64().max(MAX_BASE64_CHARS),
  })
  .refine(({ N, r }) => 128 * N * r <= MAX_SCRYPT_BYTES)
  .refine(({ salt, data }) => base64Bytes(salt) > 0 && base64Bytes(data) >= MIN_SEALED_BYTES);

/** Returns true for the files that the server reads into memory. */
export function isSmallFile(file: RepositoryFile): boolean {
  return file === 'config' || isKey(file);
}

/** Throws 400 for a file that is shorter than any file of its type. */
export function requireSealedSize(file: RepositoryFile, sizeBytes: number): void {
  if (isKey(file) || sizeBytes >= MIN_SEALED_BYTES) return;
  throw formatRefusal(`restic's files have at least ${MIN_SEALED_BYTES} bytes`);
}

/** Throws 400 unless the content is a key of restic. */
export function requireKeyFormat(content: Uint8Array): void {
  if (!ResticKey.safeParse(jsonOrNull(content)).success) throw formatRefusal('not a key of restic');
}

/** Returns true for a file of the folder `keys`. */
export function isKey(file: RepositoryFile): boolean {
  return file !== 'config' && file.type === 'keys';
}

/** A repository has one key, which `restic init` writes before the configuration. */
export function secondKey(): ResticRefusal {
  return new ResticRefusal(
    403,
    'RESTIC_KEY_EXISTS: this repository has its key; only restic init of a new repository adds one',
  );
}

function formatRefusal(why: string): ResticRefusal {
  return new ResticRefusal(400, `RESTIC_FILE_INVALID: ${why}; write files with restic only`);
}

function jsonOrNull(content: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(content).toString('utf8'));
  } catch {
    return null;
  }
}
