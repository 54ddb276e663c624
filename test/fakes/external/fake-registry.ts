/** An image registry for the real engine, which accepts registries on loopback without TLS. */
import { createHash } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { systemClock } from '#shared/runtime/clock.ts';

const MANIFEST_TYPE = 'application/vnd.docker.distribution.manifest.v2+json';
/** Two zero blocks: an empty tar archive. */
const EMPTY_TAR = new Uint8Array(1024);

export type ImageContent = {
  /** Contents of the layers: each layer is an archive with one file. */
  layers?: readonly Uint8Array[];
  /** Additional members of the image's configuration. */
  config?: Record<string, unknown>;
};

export type FakeRegistry = {
  /** `127.0.0.1:port`, the first part of image references. */
  host: string;
  /**
   * Publishes `name:tag` as an image that differs by `variant`, with one empty layer by default; returns its digest.
   */
  publish(name: string, tag: string, variant: string, content?: ImageContent): string;
  /** Answers every request with this status and error code; null ends the fault. */
  refuseWith(status: number | null, code?: string): void;
  /** Starts to send each layer and never finishes it. */
  setStalling(stalling: boolean): void;
  /** Limits the transfer rate of each layer; null: no limit. */
  setBytesPerSecond(rate: number | null): void;
  /** Requires this login; null: no login is needed. */
  requireLogin(login: { username: string; password: string } | null): void;
  /** Serves manifests that do not match their digest. */
  setForging(forging: boolean): void;
  requests(): number;
  close(): Promise<void>;
};

/** Listens on a free loopback port. */
export async function startFakeRegistry(): Promise<FakeRegistry> {
  const blobs = new Map<string, Uint8Array>();
  const manifests = new Map<string, Uint8Array>();
  const layers = new Set<string>();
  let refusal: { status: number; code: string } | null = null;
  let stalling = false;
  let forging = false;
  let rate: number | null = null;
  let login: string | null = null;
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
    else if (layers.has(reference) && stalling) {
      response.writeHead(200, { 'content-length': found.length + 1 }).write(found);
    } else if (layers.has(reference) && rate !== null) {
      response.writeHead(200, { 'content-length': found.length });
      void trickle(response, found, rate);
    } else {
      const type = kind === 'manifests' ? MANIFEST_TYPE : 'application/octet-stream';
      const headers = { 'content-type': type, 'content-length': found.length };
      const sent = forging && kind === 'manifests' ? forged(found) : found;
      response.writeHead(200, { ...headers, 'docker-content-digest': digestOf(found) }).end(sent);
    }
  }

  const server = createServer((request, response) => {
    requests += 1;
    if (login !== null && request.headers.authorization !== login) {
      response.setHeader('www-authenticate', 'Basic realm="test"');
      refuse(response, 401, 'UNAUTHORIZED');
    } else if (refusal !== null) refuse(response, refusal.status, refusal.code);
    else answer(response, request.url ?? '');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;

  return {
    host: `127.0.0.1:${port}`,
    publish(name, tag, variant, { layers: contents = [], config: own = {} } = {}) {
      const tars = contents.length === 0 ? [EMPTY_TAR] : contents.map(tarOf);
      const stored = tars.map((tar) => store(gzipSync(tar)));
      for (const { digest } of stored) layers.add(digest);
      const image = {
        architecture: process.arch === 'arm64' ? 'arm64' : 'amd64',
        os: 'linux',
        config: { Env: [`VARIANT=${variant}`], ...own },
        rootfs: { type: 'layers', diff_ids: tars.map(digestOf) },
      };
      const config = store(bytesOf(image));
      const manifest = bytesOf({
        schemaVersion: 2,
        mediaType: MANIFEST_TYPE,
        config: { mediaType: 'application/vnd.docker.container.image.v1+json', ...config },
        layers: stored.map((layer) => ({
          mediaType: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
          ...layer,
        })),
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
    setBytesPerSecond(next) {
      rate = next;
    },
    requireLogin(next) {
      const text = `${next?.username}:${next?.password}`;
      login = next === null ? null : `Basic ${Buffer.from(text).toString('base64')}`;
    },
    setForging(next) {
      forging = next;
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

const TRICKLES_PER_SECOND = 20;
const BLOCK_BYTES = 512;

async function trickle(response: ServerResponse, bytes: Uint8Array, rate: number): Promise<void> {
  const step = Math.max(1, Math.floor(rate / TRICKLES_PER_SECOND));
  for (let at = 0; at < bytes.length && !response.destroyed; at += step) {
    response.write(bytes.subarray(at, at + step));
    await systemClock.sleep(1_000 / TRICKLES_PER_SECOND);
  }
  response.end();
}

/** Returns a well-formed manifest of the same length with another digest. */
function forged(manifest: Uint8Array): Uint8Array {
  const text = new TextDecoder().decode(manifest);
  return new TextEncoder().encode(text.replace(/"size":\d/, (size) => `${size.slice(0, -1)}9`));
}

/** An archive with one file `data-<digest>`. */
function tarOf(content: Uint8Array): Uint8Array {
  const header = Buffer.alloc(BLOCK_BYTES);
  header.write(`data-${digestOf(content).slice(7, 19)}`, 0);
  header.write('0000644\0' + '0000000\0' + '0000000\0', 100);
  header.write(`${content.length.toString(8).padStart(11, '0')}\0${'0'.repeat(11)}\0`, 124);
  header.write('        0', 148);
  header.write('ustar\0' + '00', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  const padding = Buffer.alloc((BLOCK_BYTES - (content.length % BLOCK_BYTES)) % BLOCK_BYTES);
  return new Uint8Array(Buffer.concat([header, content, padding, EMPTY_TAR]));
}
