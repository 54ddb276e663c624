/** Uploads on the wire. */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { NaiveTime, queryNumber } from '../../platform/wire.ts';

const MAX_UPLOAD_BYTES = 10 * 1024 * 1024;
const IMAGES = ['image/png', 'image/jpeg', 'image/webp', 'image/gif'] as const;

/** Content types by purpose. Because avatars are public, the list has only types that browsers do not execute. */
export const UPLOAD_TYPES = {
  avatar: IMAGES,
  feedback: [...IMAGES, 'text/plain', 'application/pdf', 'application/zip', 'application/gzip'],
  template_readme: [...IMAGES, 'text/markdown', 'text/plain'],
} as const satisfies Record<string, readonly string[]>;

export const UPLOAD_PURPOSES = ['avatar', 'feedback', 'template_readme'] as const;

export const FileInput = z
  .object(
    described(
      {
        file_name: z.string().trim().min(1).max(255),
        content_type: z.string().trim().toLowerCase().max(100),
        size_bytes: z.int().min(1).max(MAX_UPLOAD_BYTES),
        purpose: z.enum(UPLOAD_PURPOSES),
      },
      {
        file_name: 'Name of the file, 1 to 255 characters.',
        content_type:
          'Media type of the file. Images are accepted for every purpose; `feedback` also accepts text, PDF, ZIP and gzip, `template_readme` also Markdown and text.',
        size_bytes: 'Exact size in bytes, 1 to 10485760 (10 MiB).',
        purpose:
          "Purpose of the file: an avatar, an attachment of feedback, or a file in a template's readme.",
      },
    ),
  )
  .meta({
    id: 'FileInput',
    example: {
      file_name: 'ada.png',
      content_type: 'image/png',
      size_bytes: 48213,
      purpose: 'avatar',
    },
  });
export type FileInput = z.output<typeof FileInput>;

export const PresignedUpload = z
  .object(
    described(
      {
        upload_url: z.string(),
        method: z.literal('PUT'),
        headers: z.record(z.string(), z.string()),
        object_key: z.string(),
        public_url: z.string().nullable(),
        expires_at: NaiveTime,
      },
      {
        upload_url:
          'Address for the upload. The address accepts one upload of exactly the stated type and size.',
        method: 'Method of the upload.',
        headers: 'Headers that the upload must contain unchanged.',
        object_key: 'Key of the file, which `attachment_keys` of feedback names.',
        public_url:
          'Address at which anyone can read the file after the upload; null for a private file.',
        expires_at: 'Time until which the address accepts the upload (UTC).',
      },
    ),
  )
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
