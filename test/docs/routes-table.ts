/** The table of routes that are served in addition to the marketplace's interface, from the OpenAPI documents. Pure. */
import { z } from 'zod';
import { OWN_ROUTES } from '../spec/not-yet.ts';
import { PORTAL_INTERFACE } from '../spec/routes.ts';

const Content = z.record(z.string(), z.object({ schema: z.unknown() }));
const Operation = z.object({
  summary: z.string().default(''),
  security: z.array(z.record(z.string(), z.unknown())).default([]),
  parameters: z.array(z.object({ name: z.string(), in: z.string() })).default([]),
  requestBody: z.object({ content: Content }).optional(),
  responses: z.record(z.string(), z.object({ content: Content.optional() })),
});
type Operation = z.output<typeof Operation>;
const Document = z.object({
  servers: z.array(z.object({ url: z.string() })).min(1),
  paths: z.record(z.string(), z.record(z.string(), Operation)),
});

/**
 * Names of the credentials, by security scheme. Below /portal, sessions and tokens of providers use the bearer scheme.
 */
const CREDENTIALS: Readonly<Record<string, string>> = {
  JwtAccessBearer: 'session',
  ApiKey: 'API key',
  ValidatorSignature: 'signed headers',
  BodySignature: 'signed body',
};

/** Returns the rows of both documents as Markdown, in their order. */
export function ownRoutesTable(documents: readonly unknown[]): string {
  const rows = documents.flatMap((each) => {
    const { servers, paths } = Document.parse(each);
    const prefix = servers[0]?.url ?? '';
    return Object.entries(paths).flatMap(([path, item]) =>
      Object.entries(item)
        .filter(([method]) => isOwn(prefix, method.toUpperCase(), path))
        .map(([method, operation]) => rowOf(method.toUpperCase(), `${prefix}${path}`, operation)),
    );
  });
  const head = '| Route | Purpose | Credential | Request | Response |';
  return [head, '|---|---|---|---|---|', ...rows, ''].join('\n');
}

function isOwn(prefix: string, method: string, path: string): boolean {
  if (prefix !== '/portal') return OWN_ROUTES.includes(`${method} ${path}`);
  return !PORTAL_INTERFACE.includes(`${method} ${path}`);
}

function rowOf(method: string, url: string, operation: Operation): string {
  const { summary, security, parameters, requestBody, responses } = operation;
  const query = parameters.filter((each) => each.in === 'query').map(({ name }) => `\`${name}\``);
  const bodies = Object.values(requestBody?.content ?? {}).map(({ schema }) => nameOf(schema));
  const request = [...bodies, ...(query.length > 0 ? [`query ${query.join(', ')}`] : [])];
  const good = Object.entries(responses).filter(([status]) => /^[12]/.test(status));
  const answers = good.flatMap(([status, { content = {} }]) =>
    Object.entries(content).map(([type, { schema }]) => {
      const what = type === 'application/json' ? nameOf(schema) : `\`${type}\``;
      return status === '200' ? what : `${status} ${what}`;
    }),
  );
  const cells = [
    `\`${method} ${url}\``,
    summary,
    credentialsOf(security, url.startsWith('/portal/')),
    request.join('; ') || '-',
    answers.join(' or ') || '-',
  ];
  return `| ${cells.join(' | ')} |`;
}

function credentialsOf(security: readonly Record<string, unknown>[], isPortal: boolean): string {
  const names = security.flatMap((each) => Object.keys(each));
  if (isPortal && names.length > 0) return 'provider';
  return names.map((name) => CREDENTIALS[name] ?? name).join(' or ') || 'none';
}

const Schema = z.looseObject({
  $ref: z.string().optional(),
  type: z.unknown().optional(),
  items: z.unknown().optional(),
  anyOf: z.array(z.unknown()).optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
});

/** Returns the name of a model; for an unnamed one its members, or the data of a portal's answer. */
function nameOf(schema: unknown): string {
  const { $ref, type, items, anyOf, properties } = Schema.parse(schema);
  if ($ref !== undefined) return `\`${$ref.split('/').at(-1)}\``;
  if (anyOf !== undefined) return anyOf.map(nameOf).join(' or ');
  if (items !== undefined) return `list of ${nameOf(items)}`;
  if (properties === undefined) return String(type ?? 'any');
  if ('success' in properties && 'data' in properties) return nameOf(properties['data']);
  return `\`{${Object.keys(properties).join(', ')}}\``;
}
