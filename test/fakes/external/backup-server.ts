/** The embedded backup storage behind a real listener, without the other parts of the central API. */
import { createHash } from 'node:crypto';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createHttpServer } from '#shared/http/server.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import {
  type BackupFolder,
  openEmbeddedBackups,
} from '../../../validator/central/backups/storage/backup-storage.ts';
import type { RepositoryPlace } from '../../../validator/central/platform/ports.ts';
import { TRUSTED_CLOCK } from '../trusted-clock.ts';

export type RestAnswer = {
  status: number;
  reason: string;
  headers: Record<string, string | string[] | undefined>;
  body: Buffer;
};

export type RestRequest = {
  place: RepositoryPlace | null;
  headers?: Record<string, string>;
  body?: Uint8Array | undefined;
  /** False: the request has no Content-Length header. */
  stated?: boolean;
};

export const sha256 = (content: Uint8Array): string =>
  createHash('sha256').update(content).digest('hex');

/** `user:password` of a location in curl's form. */
export function userOf({ environment }: RepositoryPlace): string {
  return `${environment['RESTIC_REST_USERNAME']}:${environment['RESTIC_REST_PASSWORD']}`;
}

export type BackupServer = Awaited<ReturnType<typeof startBackupServer>>;

/**
 * Serves the repositories in a folder of the caller. A request body must arrive within a second, unless the routes set
 * another limit.
 */
export async function startBackupServer(given: Partial<BackupFolder> & { folder: string }) {
  let lateRequests = 0;
  const log = createLog({ name: 'test', level: 'silent' });
  const stopping = new AbortController();
  const server = createHttpServer({
    log,
    clock: systemClock,
    random: systemRandom,
    bodyLimitBytes: 1_000,
    requestTimeoutMs: 1_000,
  });
  const backups = await openEmbeddedBackups({
    place: { bytesPerAccount: 1024 ** 3, ...given },
    secret: new Uint8Array(32).fill(7),
    clock: systemClock,
    random: systemRandom,
    log,
    stopping: stopping.signal,
    isAlone: true,
    trust: TRUSTED_CLOCK,
    origin: () => `http://127.0.0.1:${(server.server.address() as AddressInfo).port}`,
  });
  await backups.register(server);
  server.server.on('clientError', () => {
    lateRequests += 1;
  });
  await server.listen({ host: '127.0.0.1', port: 0 });

  /** Sends a request. `path` is sent unchanged, with any `..`; a relative path is relative to the repository. */
  function send(
    method: string,
    path: string,
    { place, headers = {}, body, stated = true }: RestRequest,
  ) {
    const port = (server.server.address() as AddressInfo).port;
    const base = place === null ? '' : new URL(place.location.slice('rest:'.length)).pathname;
    return new Promise<RestAnswer>((resolve, reject) => {
      const sent = request(
        {
          method,
          port,
          host: '127.0.0.1',
          path: path.startsWith('/') ? path : base + path,
          headers: {
            ...(body !== undefined && stated ? { 'content-length': body.length } : {}),
            ...headers,
          },
          ...(place === null ? {} : { auth: userOf(place) }),
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('error', reject);
          response.on('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              reason: response.statusMessage ?? '',
              headers: response.headers,
              body: Buffer.concat(chunks),
            }),
          );
        },
      );
      sent.on('error', reject);
      sent.end(body);
    });
  }

  return {
    /** Number of requests whose body arrived too late. */
    lateRequests: () => lateRequests,
    storage: backups.storage,
    fill: backups.fill,
    send,
    startJobs: backups.startJobs,
    async close(): Promise<void> {
      stopping.abort();
      await server.close();
    },
  };
}
