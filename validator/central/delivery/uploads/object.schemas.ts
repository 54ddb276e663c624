/** Uploads on the wire. */
import { z } from 'zod';
import { NaiveTime, queryNumber } from '../../platform/wire.ts';

const MAX_UPLOAD_BYTES = 10 * 1024 * 1024;
const IMAGES = ['image/png', 'image/jpeg', 'image/webp', 'image/gif'] as const;

/** Content types by purpose. None that a browser executes, because avatars are public. */
export const UPLOAD_TYPES = {
  avatar: IMAGES,
  feedback: [...IMAGES, 'text/plain', 'application/pdf', 'application/zip', 'application/gzip'],
  template_readme: [...IMAGES, 'text/markdown', 'text/plain'],
} as const satisfies Record<string, readonly string[]>;

export const UPLOAD_PURPOSES = ['avatar', 'feedback', 'template_readme'] as const;

export const FileInput = z
  .object({
    file_name: z.string().trim().min(1).max(255),
    content_type: z.string().trim().toLowerCase().max(100),
    size_bytes: z.int().min(1).max(MAX_UPLOAD_BYTES),
    purpose: z.enum(UPLOAD_PURPOSES),
  })
  .meta({ id: 'FileInput' });
export type FileInput = z.output<typeof FileInput>;

export const PresignedUpload = z
  .object({
    upload_url: z.string(),
    method: z.literal('PUT'),
    /** The upload must be sent with exactly these headers. */
    headers: z.record(z.string(), z.string()),
    object_key: z.string(),
    public_url: z.string().nullable(),
    expires_at: NaiveTime,
  })
  .meta({ id: 'PresignedUpload' });
export type PresignedUpload = z.output<typeof PresignedUpload>;

/** Path below /objects: the parts of an object's key. */
export const ObjectParams = z.object({
  purpose: z.enum(UPLOAD_PURPOSES),
  id: z.uuid(),
  name: z.string().min(1).max(100),
});

export const ObjectSignature = z.object({
  expires: queryNumber(z.int().min(0)),
  signature: z.string().max(100),
});

export const StoredObject = z.object({ success: z.literal(true), object_key: z.string() });
