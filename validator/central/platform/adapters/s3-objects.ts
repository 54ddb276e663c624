/** S3-compatible object store. The AWS SDK is loaded at the first upload. */
import type { S3Client } from '@aws-sdk/client-s3';
import type { RemoteObjects } from '../ports.ts';

export type S3Options = {
  bucket: string;
  region: string;
  /** Endpoint of an S3-compatible store, with path-style URLs; null for Amazon's. */
  endpoint: string | null;
  /** If null, the SDK searches environment, files and instance metadata. */
  credentials: { accessKeyId: string; secretAccessKey: string } | null;
  /** Base URL at which the bucket's objects are public; null if the objects are not public. */
  publicUrl: string | null;
};

/** Headers that the signature covers, so that the store rejects a file with another type or length. */
const SIGNED_HEADERS = new Set(['content-type', 'content-length', 'host']);

export function createS3Objects(options: S3Options): RemoteObjects {
  const { bucket, region, endpoint, credentials, publicUrl } = options;
  let client: Promise<S3Client> | null = null;

  async function open(): Promise<S3Client> {
    const { S3Client } = await import('@aws-sdk/client-s3');
    return new S3Client({
      region,
      // With other values the signed URL requires a checksum, which simple clients do not send.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      ...(endpoint === null ? {} : { endpoint, forcePathStyle: true }),
      ...(credentials === null ? {} : { credentials }),
    });
  }

  function connected(): Promise<S3Client> {
    client ??= open();
    return client;
  }

  return {
    async sign({ key, contentType, sizeBytes, lifetimeS }) {
      const s3 = await connected();
      const { PutObjectCommand } = await import('@aws-sdk/client-s3');
      const { getSignedUrl } = await import('@aws-sdk/s3-request-presigner');
      const put = new PutObjectCommand({
        Bucket: bucket,
        Key: key,
        ContentType: contentType,
        ContentLength: sizeBytes,
      });
      return {
        url: await getSignedUrl(s3, put, { expiresIn: lifetimeS, signableHeaders: SIGNED_HEADERS }),
        headers: { 'Content-Type': contentType },
        publicUrl: publicUrl === null ? null : `${publicUrl.replace(/\/+$/, '')}/${key}`,
      };
    },

    async remove(key) {
      const s3 = await connected();
      const { DeleteObjectCommand } = await import('@aws-sdk/client-s3');
      await s3.send(new DeleteObjectCommand({ Bucket: bucket, Key: key }));
    },
  };
}
