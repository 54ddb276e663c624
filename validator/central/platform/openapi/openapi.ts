/**
 * Generates the descriptions that GET /openapi.json of the API and of the portal return: OpenAPI 3.1.0, from the
 * routes' schemas.
 */
import swagger from '@fastify/swagger';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { HttpServer } from '#shared/http/server.ts';
import { type AuthRule, reportsKeyStatus } from '../identity.ts';
import { ONCE_HEADERS, plainModels } from './openapi-models.ts';
import { descriptionOf, errorTexts, withPathTexts } from './operation-text.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Set on routes that require no credential and are nevertheless described with the credentials of accounts. */
    declaresSecurity?: true;
  }
  interface FastifyInstance {
    portalDescription: FastifyInstance['swagger'];
  }
}

/** One OpenAPI description, and the name of its decorator on the server. */
type Described = {
  /** Prefix of the described routes. */
  prefix: string;
  title: string;
  decorator: 'swagger' | 'portalDescription';
};

type Transform = typeof jsonSchemaTransform;

/** Version of the interface, which differs from the version of the program. */
const INTERFACE_VERSION = '1.0.0';

const SECURITY: Record<AuthRule, Record<string, string[]>[]> = {
  none: [],
  user: [{ JwtAccessBearer: [] }, { ApiKey: [] }],
  session: [{ JwtAccessBearer: [] }],
  operator: [{ JwtAccessBearer: [] }, { ApiKey: [] }],
  portal: [{ JwtAccessBearer: [] }],
  validator: [{ ValidatorSignature: [] }],
  'validator-or-account': [{ ValidatorSignature: [] }, { JwtAccessBearer: [] }],
  weights: [{ BodySignature: [] }],
};

/** Rules that hold for every operation, in Markdown. */
const ABOUT = `A marketplace for GPU compute: renters rent pods on the GPU nodes of providers.

- **Times** in responses are UTC without an offset, with microseconds: \`2026-11-20T23:50:00.123456\`. Times in requests are ISO 8601; a time without an offset is UTC where the field does not require one.
- **Money** is US dollars as a JSON number with at most 6 decimals.
- **Ids** are UUIDs unless the field says otherwise. A hotkey is an sr25519 key as ss58 text with prefix 42.
- **Null and absent** members of a request are the same unless the field says that null clears it. Unknown members are ignored unless the operation says otherwise.
- **API keys** are sent as \`X-API-Key\`. A route that requires no credential ignores an invalid key and reports this in the response header \`X-API-Key-Status: invalid\`, except routes without a rate limit.
- **Errors** have a code, a message, a hint and the request id; errors of volumes, bookmarks and machine requests have only \`success\` and \`message\`. A 429 or 5xx answer to a write means that nothing was changed, unless the message says that the request may have taken effect, because the database was lost during the commit.
- \`/x\` and \`/x/\` are the same path. Every success has a JSON body unless the operation names another content type.`;

/** Installs a description. Must be called before the routes are registered. */
export async function describeInterface(
  server: HttpServer,
  { prefix, title, decorator }: Described,
): Promise<void> {
  await server.register(swagger, {
    decorator,
    openapi: {
      openapi: '3.1.0',
      info: {
        title,
        version: INTERFACE_VERSION,
        description: ABOUT,
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
              'sr25519 signature by `hotkey` over the text of the header `timestamp` (unix seconds), as 0x + hex.',
          },
          BodySignature: {
            type: 'apiKey',
            in: 'header',
            name: 'Authorization',
            description:
              "sr25519 signature by the hotkey of the path, as 0x + hex. It covers the body in the form that Python's json.dumps(body, sort_keys=True) writes.",
          },
        },
      },
    },
    transform: (document) => withSecurity(document, prefix),
    transformObject: (document) => plainModels(jsonSchemaTransformObject(document), prefix),
  });
}

function withSecurity(document: Parameters<Transform>[0], prefix: string): ReturnType<Transform> {
  const { schema: transformed, url } = jsonSchemaTransform(document);
  // Undefined for a route without a schema.
  const schema: Partial<typeof transformed> = transformed ?? {};
  const { auth, declaresSecurity, once, limit } = document.route.config ?? {};
  // Routes below /_local exist in a marketplace on one machine only, and are not part of the interface. Pages have no
  // schema.
  const described =
    (url === prefix && document.schema !== undefined) ||
    (url.startsWith(`${prefix}/`) && !url.startsWith(`${prefix}/_local/`));
  // An empty requirement means that the route also works without credentials.
  const security = declaresSecurity === true ? [...SECURITY.user, {}] : SECURITY[auth ?? 'none'];
  const { querystring, description, retry, errors = {} } = document.schema ?? {};
  const { params } = schema;
  return {
    schema: {
      ...schema,
      ...(schema.querystring === undefined
        ? {}
        : { querystring: withFlags(schema.querystring, querystring) }),
      ...(params === undefined ? {} : { params: withPathTexts(params, url) }),
      ...(once === undefined ? {} : { headers: ONCE_HEADERS }),
      description: descriptionOf({
        method: [document.route.method].flat()[0] ?? 'GET',
        auth,
        isOnce: once !== undefined,
        description,
        retry,
      }),
      'x-errors': errorTexts(errors),
      ...(reportsKeyStatus({ auth, limit }) ? { 'x-key-status': true } : {}),
      security,
      hide: !described,
    },
    url,
  };
}

/**
 * Describes flags in queries as booleans with their defaults, although they are text on the wire, and adds the query's
 * example.
 */
function withFlags(described: unknown, source: unknown): unknown {
  const parsed = ObjectSchema.safeParse(described);
  if (!parsed.success || !(source instanceof z.ZodObject)) return described;
  const example = Example.parse(parsed.data['example'] ?? {});
  const properties = Object.entries(parsed.data.properties).map(([name, property]) => [
    name,
    {
      ...property,
      ...flagOf(source.shape[name]),
      ...(name in example ? { examples: [example[name]] } : {}),
    },
  ]);
  return { ...parsed.data, properties: Object.fromEntries(properties) };
}

const ObjectSchema = z.looseObject({ properties: z.record(z.string(), z.looseObject({})) });
const Example = z.record(z.string(), z.unknown());

/** Returns the JSON schema of a flag; an empty schema for other parameters. */
function flagOf(schema: unknown): { type?: 'boolean'; default?: unknown } {
  if (schema instanceof z.ZodOptional) return flagOf(schema.unwrap());
  if (schema instanceof z.ZodDefault) {
    const flag = flagOf(schema.unwrap());
    return flag.type === undefined ? {} : { ...flag, default: schema.def.defaultValue };
  }
  const isFlag = schema instanceof z.ZodCodec && schema.def.out instanceof z.ZodBoolean;
  return isFlag ? { type: 'boolean' } : {};
}
