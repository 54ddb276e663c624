/** A bucket on loopback that verifies AWS Signature Version 4 and lists its objects. */
import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import { parseIsoTime } from '#shared/runtime/clock.ts';

export const S3_CREDENTIALS = { accessKeyId: 'AKIAEXAMPLE', secretAccessKey: 'secret/key+EXAMPLE' };
/** Number of objects in a page of a list. */
const PAGE = 3;
const REGION = 'eu-test-1';

type Signed = { names: string[]; scope: string; time: string; signature: string; payload: string };

export type S3Server = Awaited<ReturnType<typeof startS3Server>>;

/**
 * Starts the bucket. `nowMs` is the time at which it checks whether a URL has expired. The caller must call `close()`.
 */
export async function startS3Server(nowMs: () => number) {
  const objects = new Map<string, { body: Buffer; type: string }>();

  function refusal(request: IncomingMessage, url: URL): string | null {
    const byQuery = url.searchParams.has('X-Amz-Signature');
    const signed = byQuery ? fromQuery(url) : fromHeader(request);
    if (signed === null) return 'AccessDenied';
    if (byQuery) {
      const seconds = Number(url.searchParams.get('X-Amz-Expires'));
      if (timeOf(signed.time) + seconds * 1_000 <= nowMs()) return 'AccessDenied: expired';
    }
    return signatureOf(request, url, signed) === signed.signature ? null : 'SignatureDoesNotMatch';
  }

  /** ListObjectsV2 in pages of a few objects, so that clients must request further pages. */
  function listOf({ pathname, searchParams: query }: URL): string {
    const bucket = `${pathname.replace(/\/$/, '')}/`;
    const after = query.get('continuation-token') ?? '';
    const keys = [...objects.keys()]
      .filter((path) => path.startsWith(bucket + (query.get('prefix') ?? '')))
      .map((path) => path.slice(bucket.length))
      .filter((key) => key > after)
      .toSorted();
    const page = keys.slice(0, PAGE);
    const more = keys.length > page.length;
    const contents = page.map((key) => {
      const size = objects.get(bucket + key)?.body.length;
      return `<Contents><Key>${key}</Key><Size>${size}</Size></Contents>`;
    });
    const next = more ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : '';
    return `<ListBucketResult><IsTruncated>${more}</IsTruncated>${next}${contents.join('')}</ListBucketResult>`;
  }

  const server = createServer(async (request, response) => {
    const chunks: Uint8Array[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const url = new URL(request.url ?? '/', 'http://bucket');
    const refused = refusal(request, url);
    if (refused !== null) return void response.writeHead(403).end(`<Error>${refused}</Error>`);
    if (request.method === 'DELETE') {
      objects.delete(url.pathname);
      return void response.writeHead(204).end();
    }
    if (request.method === 'GET' && url.searchParams.get('list-type') === '2') {
      return void response.writeHead(200).end(listOf(url));
    }
    const known = objects.get(url.pathname);
    if (request.method === 'GET' || request.method === 'HEAD') {
      if (known === undefined) return void response.writeHead(404).end();
      const part = partOf(known.body, request.headers.range);
      response.writeHead(part === known.body ? 200 : 206, { 'Content-Length': part.length });
      return void response.end(request.method === 'GET' ? part : undefined);
    }
    if (request.headers['if-none-match'] === '*' && known !== undefined) {
      return void response.writeHead(412).end('<Error><Code>PreconditionFailed</Code></Error>');
    }
    const type = request.headers['content-type'] ?? '';
    objects.set(url.pathname, { body: Buffer.concat(chunks), type });
    response.writeHead(200).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    options: {
      bucket: 'uploads',
      region: REGION,
      endpoint: `http://127.0.0.1:${address.port}`,
      credentials: S3_CREDENTIALS,
      publicUrl: 'https://cdn.example/',
    },
    /** Stored objects by path; the path includes the bucket. */
    objects,
    close: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

/** The requested bytes; the same buffer without a `Range` header. */
function partOf(body: Buffer, range: string | undefined): Buffer {
  const match = /^bytes=(\d+)-(\d+)$/.exec(range ?? '');
  return match === null ? body : body.subarray(Number(match[1]), Number(match[2]) + 1);
}

function fromQuery({ searchParams: query }: URL): Signed | null {
  const [id, ...scope] = (query.get('X-Amz-Credential') ?? '').split('/');
  if (id !== S3_CREDENTIALS.accessKeyId) return null;
  return {
    names: (query.get('X-Amz-SignedHeaders') ?? '').split(';'),
    scope: scope.join('/'),
    time: query.get('X-Amz-Date') ?? '',
    signature: query.get('X-Amz-Signature') ?? '',
    payload: 'UNSIGNED-PAYLOAD',
  };
}

function fromHeader({ headers }: IncomingMessage): Signed | null {
  const [, id, scope = '', names = '', signature = ''] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\S+), SignedHeaders=(\S+), Signature=(\w+)$/.exec(
      headers.authorization ?? '',
    ) ?? [];
  if (id !== S3_CREDENTIALS.accessKeyId) return null;
  return {
    names: names.split(';'),
    scope,
    time: String(headers['x-amz-date']),
    signature,
    payload: String(headers['x-amz-content-sha256']),
  };
}

/** Computes the signature of a received request, in the steps of AWS's "Create a signed request". */
function signatureOf(request: IncomingMessage, url: URL, signed: Signed): string {
  const query = [...url.searchParams]
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map((pair) => pair.map(uriEncode).join('='))
    .toSorted()
    .join('&');
  const headers = signed.names.map((name) => `${name}:${String(request.headers[name]).trim()}\n`);
  const canonical = [
    request.method,
    url.pathname,
    query,
    headers.join(''),
    signed.names.join(';'),
    signed.payload,
  ].join('\n');
  const hashed = createHash('sha256').update(canonical).digest('hex');
  const text = ['AWS4-HMAC-SHA256', signed.time, signed.scope, hashed].join('\n');
  const [date = ''] = signed.scope.split('/');
  const steps = [date, REGION, 's3', 'aws4_request'];
  const key = steps.reduce<Buffer>(hmac, Buffer.from(`AWS4${S3_CREDENTIALS.secretAccessKey}`));
  return hmac(key, text).toString('hex');
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function uriEncode(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

/** Converts `20270115T080000Z` to milliseconds. */
function timeOf(text: string): number {
  const iso = text.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z');
  return parseIsoTime(iso) ?? Number.NaN;
}
