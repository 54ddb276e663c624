/** S3-compatible object store. The AWS SDK is loaded at the first upload. */
import type { S3Client } from '@aws-sdk/client-s3';
import type { RemoteObjects } from '../ports.ts';

/** A bucket and how to reach it. */
export type S3Place = {
  bucket: string;
  region: string;
  /** Endpoint of an S3-compatible store, with path-style URLs; null for Amazon's. */
  endpoint: string | null;
  /** If null, the SDK searches environment, files and instance metadata. */
  credentials: { accessKeyId: string; secretAccessKey: string } | null;
};

export type S3Options = S3Place & {
  /** Base URL at which the bucket's objects are public; null if the objects are not public. */
  publicUrl: string | null;
};

/** Headers that the signature covers, so that the store rejects a file with another type or length. */
const SIGNED_HEADERS = new Set(['content-type', 'content-length', 'host']);

/** Maximum time to connect, and without a byte. */
const CONNECT_MS = 5_000;
const IDLE_MS = 60_000;

/** Loads the AWS SDK. Nothing is sent yet. */
export async function openS3({ region, endpoint, credentials }: S3Place): Promise<S3Client> {
  const { S3Client } = await import('@aws-sdk/client-s3');
  return new S3Client({
    region,
    // With other values the signed URL requires a checksum, which simple clients do not send.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: IDLE_MS },
    ...(endpoint === null ? {} : { endpoint, forcePathStyle: true }),
    ...(credentials === null ? {} : { credentials }),
  });
}

export function createS3Objects(options: S3Options): RemoteObjects {
  const { bucket, publicUrl } = options;
  let client: Promise<S3Client> | null = null;

  function connected(): Promise<S3Client> {
    client ??= openS3(options);
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
