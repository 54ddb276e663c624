/** Generates bad requests from the OpenAPI description. The same seed generates the same requests. */
import { z } from 'zod';
import type { Random } from '#shared/runtime/random.ts';

export type FuzzRequest = {
  method: string;
  /** Path below /api, with the query. */
  path: string;
  headers: Record<string, string>;
  body?: string;
};

const Parameter = z.object({ name: z.string(), in: z.string() });
const Document = z.object({
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.object({
        parameters: z.array(Parameter).default([]),
        requestBody: z.object({ content: z.record(z.string(), z.unknown()) }).optional(),
      }),
    ),
  ),
  components: z.object({ schemas: z.record(z.string(), z.unknown()) }),
});

const ObjectSchema = z.looseObject({ properties: z.record(z.string(), z.unknown()) });
const Reference = z.looseObject({ $ref: z.string() });

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'];
const TEXTS = [
  '',
  ' ',
  'x',
  'not-a-uuid',
  '00000000-0000-4000-8000-000000000000',
  "' or 1=1; --",
  '../../etc/passwd',
  '%00',
  '\u0000',
  '\ud800',
  '\u202e\u{1f680}',
  'null',
  'true',
  '-1',
  '0',
  '1e309',
  'NaN',
  '9007199254740993',
  '2026-13-45T99:99:99Z',
  '2026-01-01T00:00:00+14:00',
  '{{7*7}}',
  '$ref',
  '__proto__',
  'a'.repeat(300),
  'ü'.repeat(5_000),
];
const VALUES: readonly unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  0.5,
  1e300,
  2 ** 53,
  [],
  {},
  [null],
  [[[[]]]],
  { $gt: '' },
  { constructor: { prototype: {} } },
  Array.from({ length: 200 }, () => 'x'),
];
const RAW_BODIES = [
  '',
  '{',
  'null',
  '[]',
  '7',
  '"text"',
  '{"__proto__":{"admin":true}}',
  '{"a":1,"a":2}',
  '['.repeat(5_000),
  `{"name":"${'n'.repeat(300_000)}"}`,
];
const TYPES = ['application/json', 'application/json', 'application/json', 'text/plain', '*/*', ''];
const ACCEPTS = ['*/*', 'application/problem+json', 'text/event-stream', ';;;', ''];

/**
 * Creates the generator. `ids` belong to existing objects, so that requests with them are not rejected as not found.
 */
export function createFuzz(document: unknown, random: Random, ids: () => readonly string[]) {
  const { paths, components } = Document.parse(document);
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method, path, operation })),
  );
  const pick = <T>(from: readonly T[]): T => {
    const chosen = from[random.int(from.length)];
    if (chosen === undefined) throw new Error('cannot choose from an empty list');
    return chosen;
  };
  const oneIn = (count: number) => random.int(count) === 0;
  const text = () => pick([...TEXTS, ...ids()]);
  const value = () => (oneIn(2) ? text() : pick(VALUES));

  /** Names of the members of the body's schema. Each of them receives invalid values. */
  function membersOf(content: Record<string, unknown> | undefined): string[] {
    const schema = z.object({ schema: z.unknown() }).safeParse(content?.['application/json']);
    return propertiesOf(schema.data?.schema);
  }

  function propertiesOf(schema: unknown): string[] {
    const reference = Reference.safeParse(schema);
    if (reference.success) {
      return propertiesOf(components.schemas[reference.data.$ref.split('/').at(-1) ?? '']);
    }
    const parsed = ObjectSchema.safeParse(schema);
    return parsed.success ? Object.keys(parsed.data.properties) : [];
  }

  function bodyOf(members: readonly string[]): string {
    if (oneIn(4)) return pick(RAW_BODIES);
    const chosen = members.filter(() => !oneIn(3)).map((name) => [name, value()]);
    return JSON.stringify(Object.fromEntries(chosen));
  }

  function headersOf(credentials: Record<string, string>): Record<string, string> {
    return {
      ...(oneIn(8)
        ? { 'x-api-key': pick(['', 'sk_', 'sk_nobody', 'x'.repeat(5_000)]) }
        : credentials),
      ...(oneIn(8) ? { authorization: pick(['Bearer', 'Bearer a.b.c', 'Basic eDp5', '']) } : {}),
      ...(oneIn(4) ? { 'idempotency-key': pick(['k', 'k', '', 'a b', 'x'.repeat(256)]) } : {}),
      ...(oneIn(6) ? { 'x-request-id': pick(['short', 'x'.repeat(100), 'abcdefgh']) } : {}),
      ...(oneIn(6) ? { accept: pick(ACCEPTS) } : {}),
      ...(oneIn(9) ? { 'x-source': pick(['ui', 'SDK', 'nobody']) } : {}),
      ...(oneIn(9) ? { 'last-event-id': pick(['x', '0.0.0']) } : {}),
    };
  }

  return {
    operations: operations.length,
    /** Returns the next request, for each operation in turn. */
    next(index: number, credentials: Record<string, string>): FuzzRequest {
      const { method, path, operation } = pick([
        operations[index % operations.length] ?? pick(operations),
      ]);
      const filled = path.replaceAll(/\{[^}]+\}/g, () => encodeURIComponent(wellFormed(text())));
      const query = operation.parameters
        .filter((parameter) => parameter.in === 'query' && !oneIn(3))
        .map(({ name }) => `${name}=${encodeURIComponent(wellFormed(text()))}`);
      const url = query.length === 0 ? filled : `${filled}?${query.join('&')}`;
      const headers = headersOf(credentials);
      const sent = { method: oneIn(20) ? pick(METHODS) : method.toUpperCase(), path: url, headers };
      if (['GET', 'HEAD', 'OPTIONS'].includes(sent.method)) return sent;
      const body = bodyOf(membersOf(operation.requestBody?.content));
      return { ...sent, headers: { ...headers, 'content-type': pick(TYPES) }, body };
    },
  };
}

/** Replaces unpaired surrogates, which a URL cannot contain. */
function wellFormed(text: string): string {
  return text.toWellFormed();
}

/**
 * Statuses allowed for bad requests. 500 never is; 502 and 503 come from dependencies, which these tests do not have.
 */
export const FUZZ_STATUSES: ReadonlySet<number> = new Set([
  200, 201, 400, 401, 403, 404, 405, 409, 413, 414, 415, 422, 426, 429, 431, 502, 503,
]);

/**
 * Returns true for routes that respond only after some time: a sleep, a followed log, an event stream. The fuzz test
 * omits them.
 */
export function isEndless(path: string): boolean {
  const seconds = Number(decodeURIComponent(/^\/sleep\/([^?]*)/.exec(path)?.[1] ?? 'x'));
  const isStream = /follow=(?:true|1)|^\/users\/me\/events\/stream(?:\?|$)/.test(path);
  return (seconds >= 0 && seconds <= 30) || isStream;
}
