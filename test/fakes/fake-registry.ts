/** A registry with one-layer images, spoken to by the real engine: loopback registries need no TLS. */
import { createHash } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';

const MANIFEST_TYPE = 'application/vnd.docker.distribution.manifest.v2+json';
/** Two zero blocks: an empty tar archive. */
const EMPTY_TAR = new Uint8Array(1024);

export type FakeRegistry = {
  /** `127.0.0.1:port`, the first part of its references. */
  host: string;
  /** Makes `name:tag` an image that differs by `variant`; returns its digest. */
  publish(name: string, tag: string, variant: string): string;
  /** Answers every request with this status and error code; null mends it. */
  refuseWith(status: number | null, code?: string): void;
  /** Blobs are begun and never finished. */
  setStalling(stalling: boolean): void;
  requests(): number;
  close(): Promise<void>;
};

/** Listens on a free port. */
export async function startFakeRegistry(): Promise<FakeRegistry> {
  const blobs = new Map<string, Uint8Array>();
  const manifests = new Map<string, Uint8Array>();
  let refusal: { status: number; code: string } | null = null;
  let stalling = false;
  let requests = 0;

  function store(bytes: Uint8Array): { digest: string; size: number } {
    const digest = digestOf(bytes);
    blobs.set(digest, bytes);
    return { digest, size: bytes.length };
  }

  function answer(response: ServerResponse, path: string): void {
    const [, name = '', kind, reference = ''] =
      /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(path) ?? [];
    const found =
      kind === 'manifests' ? manifests.get(`${name} ${reference}`) : blobs.get(reference);
    if (path === '/v2/') response.end('{}');
    else if (found === undefined) refuse(response, 404, 'MANIFEST_UNKNOWN');
    else if (kind === 'blobs' && stalling) {
      response.writeHead(200, { 'content-length': found.length + 1 }).write(found);
    } else {
      const type = kind === 'manifests' ? MANIFEST_TYPE : 'application/octet-stream';
      const headers = { 'content-type': type, 'content-length': found.length };
      response.writeHead(200, { ...headers, 'docker-content-digest': digestOf(found) }).end(found);
    }
  }

  const server = createServer((request, response) => {
    requests += 1;
    if (refusal !== null) refuse(response, refusal.status, refusal.code);
    else answer(response, request.url ?? '');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;

  return {
    host: `127.0.0.1:${port}`,
    publish(name, tag, variant) {
      const layer = store(gzipSync(EMPTY_TAR));
      const image = {
        architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
        os: 'linux',
        config: { Env: [`VARIANT=${variant}`] },
        rootfs: { type: 'layers', diff_ids: [digestOf(EMPTY_TAR)] },
      };
      const config = store(bytesOf(image));
      const manifest = bytesOf({
        schemaVersion: 2,
        mediaType: MANIFEST_TYPE,
        config: { mediaType: 'application/vnd.docker.container.image.v1+json', ...config },
        layers: [{ mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip', ...layer }],
      });
      manifests.set(`${name} ${tag}`, manifest);
      manifests.set(`${name} ${digestOf(manifest)}`, manifest);
      return digestOf(manifest);
    },
    refuseWith(status, code = 'UNKNOWN') {
      refusal = status === null ? null : { status, code };
    },
    setStalling(next) {
      stalling = next;
    },
    requests: () => requests,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function refuse(response: ServerResponse, status: number, code: string): void {
  const errors = [{ code, message: code.toLowerCase().replaceAll('_', ' ') }];
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ errors }));
}

function bytesOf(value: unknown): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}
