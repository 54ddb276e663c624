/** Compares the app's OpenAPI description with the interface's route table. Pure. */
import { z } from 'zod';
import { LISTED_ERRORS, PORTAL_ROUTES, QUERIES, ROUTES, type SpecifiedRoute } from './routes.ts';

const Schema = z.looseObject({
  $ref: z.string().optional(),
  type: z.union([z.string(), z.array(z.string())]).optional(),
  default: z.unknown().optional(),
});
const Content = z.record(z.string(), z.object({ schema: z.unknown() }));
const Operation = z.object({
  security: z.array(z.record(z.string(), z.unknown())).default([]),
  parameters: z
    .array(
      z.object({
        name: z.string(),
        in: z.string(),
        required: z.boolean().default(false),
        schema: Schema,
      }),
    )
    .default([]),
  requestBody: z.object({ content: Content }).optional(),
  responses: z.record(z.string(), z.object({ content: Content.optional() })),
});
type Operation = z.output<typeof Operation>;
export const Description = z.object({
  openapi: z.string(),
  info: z.object({ version: z.string() }),
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  components: z.object({
    schemas: z.record(z.string(), z.unknown()),
    securitySchemes: z.record(z.string(), z.unknown()),
  }),
});
export type Description = z.output<typeof Description>;

/** Returns `METHOD /path: difference` for each difference; `METHOD /path: missing` for a route that is not served. */
export function differences(description: Description): string[] {
  return ROUTES.flatMap((route) => {
    const name = `${route.method} ${route.path}`;
    const operation = description.paths[route.path]?.[route.method.toLowerCase()];
    if (operation === undefined) return [`${name}: missing`];
    const listed = { query: QUERIES[name] ?? [], errors: LISTED_ERRORS[name] ?? [] };
    return problemsOf(route, operation, listed).map((problem) => `${name}: ${problem}`);
  });
}

/** Returns `METHOD /path` of every route that the interface's route table does not contain. */
export function additions(description: Description): string[] {
  const specified = new Set(ROUTES.map(({ method, path }) => `${method} ${path}`));
  return Object.entries(description.paths).flatMap(([path, item]) =>
    Object.keys(item)
      .map((method) => `${method.toUpperCase()} ${path}`)
      .filter((name) => !specified.has(name)),
  );
}

/** Routes that are not served, as `METHOD /portal/path: missing`. */
export function missingInPortal(hasRoute: (method: string, url: string) => boolean): string[] {
  return PORTAL_ROUTES.map(([method, path]) => [method, `/portal${path}`] as const)
    .filter(([method, url]) => !hasRoute(method, url))
    .map(([method, url]) => `${method} ${url}: missing`);
}

function problemsOf(
  route: SpecifiedRoute,
  operation: Operation,
  { query, errors }: { query: readonly string[]; errors: readonly number[] },
): string[] {
  const schemes = operation.security.flatMap((entry) => Object.keys(entry));
  const needsInput = route.request !== '-' || /\{/.test(route.path) || query.length > 0;
  const success = operation.responses[String(route.status)];
  const checks: [problem: string, holds: boolean][] = [
    ['security', schemes.includes('JwtAccessBearer') === (route.security === 'JWT')],
    ['request', route.request === '-' || names(operation.requestBody?.content, route.request)],
    ['status', success !== undefined],
    ['response', route.response === '-' || names(success?.content, route.response)],
    ['422', !needsInput || '422' in operation.responses],
    ...errors.map((status): [string, boolean] => [
      String(status),
      String(status) in operation.responses,
    ]),
    ...query.map((expected): [string, boolean] => [
      `query ${expected}`,
      queriesOf(operation).includes(expected),
    ]),
  ];
  return checks.filter(([, holds]) => !holds).map(([problem]) => problem);
}

/**
 * Returns true if a JSON body has this model: the model itself, a list of it for `X[]`, or one of several with null.
 */
function names(content: z.output<typeof Content> | undefined, model: string): boolean {
  const schema = JSON.stringify(content?.['application/json']?.schema ?? null);
  const reference = `{"$ref":"#/components/schemas/${model.replace('[]', '')}"}`;
  if (model.endsWith('[]')) {
    return schema.includes('"type":"array"') && schema.includes(`"items":${reference}`);
  }
  return schema === reference || schema.includes(`"anyOf":[${reference}`);
}

function queriesOf({ parameters }: Operation): string[] {
  return parameters
    .filter((parameter) => parameter.in === 'query')
    .map(({ name, required, schema }) => {
      const byDefault = schema.default === undefined ? '' : `=${String(schema.default)}`;
      return `${name}${required ? '!' : ''} ${String(schema.type)}${byDefault}`;
    });
}
