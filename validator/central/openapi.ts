/** The interface description at GET /openapi.json: OpenAPI 3.1.0 made from the routes' own schemas. */
import swagger from '@fastify/swagger';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import type { HttpServer } from '#shared/http/server.ts';
import type { AuthRule } from './auth/identity.ts';
import { plainModels } from './openapi.models.ts';

type Transform = typeof jsonSchemaTransform;

/** The version of the interface, not of the program. */
const INTERFACE_VERSION = '1.0.0';

const SECURITY: Record<AuthRule, Record<string, string[]>[]> = {
  none: [],
  user: [{ JwtAccessBearer: [] }, { ApiKey: [] }],
  session: [{ JwtAccessBearer: [] }],
  portal: [{ JwtAccessBearer: [] }],
  validator: [{ ValidatorSignature: [] }],
};

/** To be called before routes are registered. Only routes below `prefix` are described. */
export async function describeInterface(server: HttpServer, prefix: string): Promise<void> {
  await server.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Podwright',
        version: INTERFACE_VERSION,
        description: 'A marketplace for GPU compute.',
        license: { name: 'MIT', identifier: 'MIT' },
      },
      servers: [{ url: prefix }],
      components: {
        securitySchemes: {
          JwtAccessBearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
          ApiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
          ValidatorSignature: {
            type: 'apiKey',
            in: 'header',
            name: 'signature',
            description:
              'sr25519 over the text of the header `timestamp` (unix seconds) by `hotkey`, as 0x + hex.',
          },
        },
      },
    },
    transform: (document) => withSecurity(document, prefix),
    transformObject: (document) => plainModels(jsonSchemaTransformObject(document)),
  });
}

function withSecurity(document: Parameters<Transform>[0], prefix: string): ReturnType<Transform> {
  const { schema, url } = jsonSchemaTransform(document);
  const { auth } = document.route.config ?? {};
  const described = url === prefix || url.startsWith(`${prefix}/`);
  const security = SECURITY[auth ?? 'none'];
  return { schema: { ...schema, security, hide: !described }, url };
}
