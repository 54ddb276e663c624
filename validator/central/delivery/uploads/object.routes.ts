/** POST /users/presigned-url, and the embedded object store below {origin}/objects. */
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import type { HttpServer } from '#shared/http/server.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { userOf } from '../../platform/identity.ts';
import {
  FileInput,
  ObjectParams,
  ObjectSignature,
  PresignedUpload,
  StoredObject,
} from './object.schemas.ts';
import type { Objects } from './object.service.ts';

/** Cache duration of avatars: the file of a key never changes. */
const CACHE_SECONDS = 31_536_000;

/** Registers the route below /api. If `publicOrigin` is null, the origin of the request is used. */
export function registerUploadRoute(
  api: HttpServer,
  objects: Objects,
  publicOrigin: string | null,
): void {
  api.post(
    '/users/presigned-url',
    {
      config: { auth: 'user' },
      schema: {
        tags: ['Users'],
        summary: 'Create an address for an upload',
        description:
          'Returns a signed address to which the client uploads one file with `PUT`. The file is stored only if type and size match.',
        errors: {
          validation_error: 'the media type is not accepted for this purpose',
          bad_request: 'the account has too many uploads, or this marketplace stores no files',
        },
        retry: 'Safe: a repeat returns another address. Unused uploads are removed.',
        body: FileInput,
        response: { 201: PresignedUpload },
      },
    },
    async (request, reply) => {
      const origin = publicOrigin ?? `${request.protocol}://${request.host}`;
      void reply.status(201);
      return objects.presign(userOf(request).accountId, request.body, origin);
    },
  );
}

/** Registers the routes at the origin. */
export async function registerObjectRoutes(origin: HttpServer, objects: Objects): Promise<void> {
  await origin.register(async (scope: HttpServer) => {
    // Uploads of any type are streamed without parsing.
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', (_request, payload, done) => done(null, payload));
    scope.put(
      '/objects/:purpose/:id/:name',
      {
        config: { auth: 'none' },
        schema: {
          params: ObjectParams,
          querystring: ObjectSignature,
          response: { 200: StoredObject },
        },
      },
      async (request) => {
        const key = keyOf(request.params);
        const contentType = (request.headers['content-type'] ?? '').toLowerCase();
        const stated = request.headers['content-length'];
        await objects.put(key, request.query, {
          contentType,
          content: contentOf(request),
          statedBytes: stated === undefined ? null : Number(stated),
        });
        return { success: true as const, object_key: key };
      },
    );
    scope.get(
      '/objects/:purpose/:id/:name',
      { config: { auth: 'none' }, schema: { params: ObjectParams } },
      async (request, reply) => {
        const { upload, content } = await objects.open(keyOf(request.params));
        return (
          reply
            .header('Content-Length', upload.size_bytes)
            .header('Cache-Control', `public, max-age=${CACHE_SECONDS}, immutable`)
            // Browsers must not guess a content type that differs from the stated one.
            .header('X-Content-Type-Options', 'nosniff')
            .header('Content-Security-Policy', "default-src 'none'; sandbox")
            .type(upload.content_type)
            .send(content)
        );
      },
    );
  });
}

function keyOf({ purpose, id, name }: { purpose: string; id: string; name: string }): string {
  return `${purpose}/${id}/${name}`;
}

function contentOf(request: FastifyRequest): IncomingMessage {
  if (request.body === undefined || request.body === null) {
    throw new ApiError('bad_request', 'The upload has no content');
  }
  return request.body as IncomingMessage;
}
