/** Objects below a prefix of an S3-compatible bucket, read and written by this process. Loads the AWS SDK on first use. */
import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import type { S3Client } from '@aws-sdk/client-s3';
import type { ObjectBucket } from '../ports.ts';
import { openS3, type S3Place } from './s3-objects.ts';

/** `prefix` is empty or ends with a slash. */
export type S3BucketOptions = S3Place & { prefix: string };

const PREFIX = 's3:';

/**
 * Parses restic's notation, such as `s3:https://host/bucket/folder` or `s3:s3.amazonaws.com/bucket`. Returns null for
 * other text, and for an address without a bucket.
 */
export function parseS3Address(
  text: string,
): Pick<S3BucketOptions, 'endpoint' | 'bucket' | 'prefix'> | null {
  if (!text.startsWith(PREFIX)) return null;
  const rest = text.slice(PREFIX.length).replace(/^\/\//, '');
  const match = /^(https?:\/\/)?([^/]+)\/([^/]+)\/?(.*?)\/*$/.exec(rest);
  if (match === null) return null;
  const [, scheme = 'https://', host = '', bucket = '', folder = ''] = match;
  return { endpoint: `${scheme}${host}`, bucket, prefix: folder === '' ? '' : `${folder}/` };
}

export function createS3Bucket({ prefix, ...place }: S3BucketOptions): ObjectBucket {
  const { bucket: Bucket } = place;
  let client: Promise<S3Client> | null = null;
  const keyOf = (key: string) => ({ Bucket, Key: `${prefix}${key}` });

  async function connect() {
    client ??= openS3(place);
    return { s3: await client, sdk: await import('@aws-sdk/client-s3') };
  }

  return {
    async size(key) {
      const { s3, sdk } = await connect();
      const head = await unlessAbsent(s3.send(new sdk.HeadObjectCommand(keyOf(key))));
      return head === null ? null : (head.ContentLength ?? 0);
    },

    async read(key, range) {
      const { s3, sdk } = await connect();
      const part = range === null ? {} : { Range: `bytes=${range.start}-${range.end}` };
      const command = new sdk.GetObjectCommand({ ...keyOf(key), ...part });
      const found = await unlessAbsent(s3.send(command));
      return found?.Body instanceof Readable ? found.Body : null;
    },

    async create(key, content) {
      const { s3, sdk } = await connect();
      const command = new sdk.PutObjectCommand({
        ...keyOf(key),
        Body: content === null ? '' : createReadStream(content.file),
        ContentLength: content?.bytes ?? 0,
        IfNoneMatch: '*',
      });
      try {
        await s3.send(command);
        return true;
      } catch (error) {
        if (statusOf(error) === EXISTS) return false;
        throw error;
      }
    },

    async remove(key) {
      const { s3, sdk } = await connect();
      await s3.send(new sdk.DeleteObjectCommand(keyOf(key)));
    },

    async *list(below) {
      const { s3, sdk } = await connect();
      const pages = sdk.paginateListObjectsV2({ client: s3 }, { Bucket, Prefix: prefix + below });
      for await (const { Contents: objects = [] } of pages) {
        yield objects.map(({ Key: key = '', Size: bytes = 0 }) => ({
          key: key.slice(prefix.length),
          bytes,
        }));
      }
    },
  };
}

const ABSENT = 404;
/** A precondition failed: the object exists. */
const EXISTS = 412;

async function unlessAbsent<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    if (statusOf(error) === ABSENT) return null;
    throw error;
  }
}

function statusOf(error: unknown): number | undefined {
  return error instanceof Error && '$metadata' in error
    ? (error.$metadata as { httpStatusCode?: number }).httpStatusCode
    : undefined;
}
