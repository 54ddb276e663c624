/**
 * Routes of restic's REST protocol below {origin}/restic/<repository id> (API v1 and v2). They are not part of the API
 * or its description, and do not use its error envelope: the body of an error is a short text, which is also in the
 * status line, because restic displays the status line.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { toApiError } from '#shared/http/error-body.ts';
import type { HttpServer } from '#shared/http/server.ts';
import type { Log } from '#shared/runtime/log.ts';
import type { RepositoryService } from './repository.service.ts';
import type { Grant, RepositoryCredentials } from './repository-credentials.ts';
import {
  notFound,
  parseResticPath,
  type RepositoryFile,
  ResticRefusal,
  type ResticTarget,
} from './restic-protocol.ts';
import type { Transfers } from './transfers.ts';
import { type Content, MAX_FILE_BYTES } from './upload.ts';

const INTERNAL_ERROR = 500;
const V1 = 'application/vnd.x.restic.rest.v1';
const V2 = 'application/vnd.x.restic.rest.v2';
/** Content type of files. */
const BINARY = 'application/octet-stream';
/** Additional headers of errors by status. */
const HEADERS: Record<number, Record<string, string>> = {
  401: { 'WWW-Authenticate': 'Basic realm="backups"' },
  503: { 'Retry-After': '1' },
};

export type RepositoryRoutesDeps = {
  repositories: RepositoryService;
  credentials: RepositoryCredentials;
  transfers: Transfers;
  log: Log;
};

export async function registerRepositoryRoutes(
  origin: HttpServer,
  { repositories, credentials, transfers, log }: RepositoryRoutesDeps,
): Promise<void> {
  await origin.register(async (scope: HttpServer) => {
    // Accept content of every type as a stream, without a parser.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
    scope.setErrorHandler((error, request, reply) => refuse(error, { request, reply, log }));
    scope.route({
      method: ['GET', 'HEAD', 'POST', 'DELETE'],
      url: '/restic/*',
      bodyLimit: MAX_FILE_BYTES,
      // transfers.ts limits these requests: backups send requests as fast as they can, and large files may arrive over
      // slow connections.
      config: { auth: 'none', limit: 'exempt', slowBody: true },
      async handler(request, reply) {
        const { grant, target } = authorize(request, credentials);
        const end = transfers.begin(grant.repositoryId, request.raw.socket);
        reply.raw.once('close', end);
        return answer(repositories, { grant, target, request, reply });
      },
    });
  });
}

/** Throws 401 before any answer that reveals whether the repository or the path exists. */
function authorize(request: FastifyRequest, credentials: RepositoryCredentials) {
  const path = (request.raw.url ?? '').split('?', 1)[0] ?? '';
  const { id, target } = parseResticPath(path);
  const grant = id === null ? null : credentials.grantOf(id, request.headers.authorization);
  if (grant === null) throw new ResticRefusal(401, 'Credentials of this repository are needed');
  if (target === null) throw notFound();
  return { grant, target };
}

type Authorized = {
  grant: Grant;
  target: ResticTarget;
  request: FastifyRequest;
  reply: FastifyReply;
};

async function answer(repositories: RepositoryService, authorized: Authorized): Promise<unknown> {
  const { grant, target, request, reply } = authorized;
  const { method } = request;
  switch (target.kind) {
    case 'repository':
      if (method !== 'POST' || !isCreation(request)) throw notFound();
      await repositories.create(grant);
      return reply.send();
    case 'list': {
      if (method !== 'GET' && method !== 'HEAD') throw notFound();
      const withSizes = (request.headers.accept ?? '').includes(V2);
      void reply.type(withSizes ? V2 : V1);
      return repositories.list(grant, target.type, withSizes);
    }
    case 'file':
      return answerFile(repositories, target.file, authorized);
  }
}

async function answerFile(
  repositories: RepositoryService,
  file: RepositoryFile,
  { grant, request, reply }: Authorized,
): Promise<unknown> {
  switch (request.method) {
    case 'HEAD':
      return reply
        .type(BINARY)
        .header('Accept-Ranges', 'bytes')
        .header('Content-Length', await repositories.size(grant, file))
        .send();
    case 'GET': {
      const { sizeBytes, range, stream } = await repositories.read(
        grant,
        file,
        request.headers.range,
      );
      void reply.type(BINARY).header('Accept-Ranges', 'bytes');
      if (range === null) return reply.header('Content-Length', sizeBytes).send(stream);
      return reply
        .status(206)
        .header('Content-Length', range.end - range.start + 1)
        .header('Content-Range', `bytes ${range.start}-${range.end}/${sizeBytes}`)
        .send(stream);
    }
    case 'POST':
      await repositories.write(grant, file, contentOf(request));
      return reply.send();
    default:
      await repositories.remove(grant, file);
      return reply.send();
  }
}

function isCreation({ query }: FastifyRequest): boolean {
  return (
    typeof query === 'object' && query !== null && 'create' in query && query.create === 'true'
  );
}

function contentOf({ raw, headers }: FastifyRequest): Content {
  const length = headers['content-length'];
  return { stream: raw, declaredBytes: length === undefined ? null : Number(length) };
}

function refuse(
  error: unknown,
  { request, reply, log }: { request: FastifyRequest; reply: FastifyReply; log: Log },
): void {
  const { status, message, headers } = refusalOf(error, request);
  if (!(error instanceof ResticRefusal) && status >= INTERNAL_ERROR) {
    log.error({ err: error, request_id: request.id }, 'restic request failed');
  }
  // Discards the remaining content, which would otherwise precede the next request of the connection.
  request.raw.resume();
  reply.raw.statusMessage = message;
  void reply.status(status).headers(headers).type('text/plain; charset=utf-8').send(`${message}\n`);
}

function refusalOf(error: unknown, request: FastifyRequest) {
  if (error instanceof ResticRefusal) {
    const { status, message } = error;
    return { status, message, headers: HEADERS[status] ?? {} };
  }
  const { status, message, options } = toApiError(error, request);
  return { status, message, headers: options.headers ?? {} };
}
