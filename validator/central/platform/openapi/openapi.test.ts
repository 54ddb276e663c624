import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { plainModels } from './openapi-models.ts';

type Operation = {
  tags?: string[];
  security?: object[];
  parameters?: { name: string; in: string; required?: boolean; schema: object }[];
  responses: Record<string, { description: string; content?: object }>;
};
type Description = {
  openapi: string;
  info: { title: string; version: string };
  servers: { url: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, object>; securitySchemes: Record<string, object> };
};

let central: TestCentral;
let document: Description;
beforeEach(async () => {
  central = await createTestCentral();
  document = (await central.call('GET', '/openapi.json')).body;
});
afterEach(() => central.close());

it('the description uses OpenAPI 3.1.0, has version 1.0.0, and contains both security schemes', () => {
  expect(document).toMatchObject({
    openapi: '3.1.0',
    info: { title: 'Podwright', version: '1.0.0' },
    servers: [{ url: '/api' }],
    components: {
      securitySchemes: {
        JwtAccessBearer: { type: 'http', scheme: 'bearer' },
        ApiKey: { type: 'apiKey', in: 'header', name: 'X-API-Key' },
      },
    },
  });
});

it('describes every route below the prefix, each with tag, responses and path parameters', () => {
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  );
  const described = operations.map(
    ({ path, method }) => `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, '*')}`,
  );
  expect(described.toSorted()).toEqual(routesBelow('/api').toSorted());
  for (const { path, method, operation } of operations) {
    expect([path, method, operation.tags?.length]).toEqual([path, method, 1]);
    expect(Object.keys(operation.responses)).toEqual(
      expect.arrayContaining([expect.stringMatching(/^(?:101|20[01])$/), 'default']),
    );
    const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
    const inPath = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path');
    expect(inPath.map((parameter) => parameter.name)).toEqual(named);
    expect(inPath.every((parameter) => parameter.required === true)).toBe(true);
  }
});

it('states the security of each route', () => {
  const security = (path: string, method: string) => document.paths[path]?.[method]?.security;
  const both = [{ JwtAccessBearer: [] }, { ApiKey: [] }];
  expect(security('/users/me', 'get')).toEqual(both);
  expect(security('/keys', 'get')).toEqual(both);
  expect(security('/keys', 'post')).toEqual([{ JwtAccessBearer: [] }]);
  expect(security('/templates', 'get')).toEqual([]);
  expect(document.paths['/users/me']?.['get']?.responses).toHaveProperty('401');
  expect(document.paths['/templates']?.['get']?.responses).not.toHaveProperty('401');
});

it('contains each model once, and has no reference to a missing model', () => {
  const names = Object.keys(document.components.schemas);
  expect(names).toEqual(
    expect.arrayContaining([
      'ChatOAuthAuthorizationUrlResponse',
      'ChatOAuthCallbackResponse',
      'CreateSshKey',
      'CreateUserDto',
      'FileInput',
      'LoginUserDto',
      'RequestResetPasswordDto',
      'ResetPasswordDto',
      'SshKey',
      'TemplateResponse',
      'UpdateUserDto',
      'User',
    ]),
  );
  expect(names.filter((name) => name.endsWith('Input'))).toEqual(['FileInput']);
  const text = JSON.stringify(document);
  const referred = [...text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name);
  expect([...new Set(referred)].toSorted()).toEqual(names.toSorted());
});

it('describes the error bodies of each route', async () => {
  const errors = (path: string) =>
    Object.entries(document.paths[path] ?? {}).map(([, { responses }]) =>
      ['422', 'default'].map((status) => JSON.stringify(responses[status]?.content ?? null)),
    );
  for (const path of ['/machine-requests/{id}', '/bookmark/{executor_id}', '/volumes/{id}']) {
    for (const content of errors(path).flat()) expect(content).toMatch(/\/FlatErrorResponse"/);
    expect(errors(path)).not.toEqual([]);
  }
  for (const content of errors('/volumes/{volume_id}/current-stats').flat()) {
    expect(content).toMatch(/\/ErrorResponse"/);
  }
  const [[refusal, failure] = []] = errors('/backup-configs/{id}');
  expect(refusal).toMatch(/\/ErrorResponse"/);
  expect(failure).toMatch(/\/ErrorResponse".*\/FlatErrorResponse"/);
  const { body } = await central.call('GET', '/machine-requests');
  expect(Object.keys(body)).toEqual(['success', 'message']);
  const portal = await central.server.inject({ url: '/portal/openapi.json' });
  expect(portal.payload).not.toContain('FlatErrorResponse');
  expect(portal.payload).toContain('/machine-requests');
});

it('a model contains its defaults and its required members', async () => {
  expect(document.components.schemas['CreateTemplate']).toMatchObject({
    required: ['name', 'docker_image'],
    properties: { internal_ports: { default: [22, 8000] }, category: { default: 'UBUNTU' } },
  });
  const portal = await central.server.inject({ url: '/portal/openapi.json' });
  expect(portal.json().components.schemas.AddNode).toMatchObject({
    required: ['gpu_type'],
    properties: { port: { default: 8_080 }, gpu_count: { default: 1 } },
  });
});

it('rejects a model that differs between requests and responses', () => {
  const documentOf = (input: object, output: object) => ({
    paths: {
      '/x': {
        put: {
          requestBody: { $ref: '#/components/schemas/ThingInput' },
          responses: { 200: { $ref: '#/components/schemas/Thing' } },
        },
      },
    },
    components: { schemas: { Thing: output, ThingInput: input, FileInput: {}, Unused: {} } },
  });
  const closed = { type: 'object', additionalProperties: false };
  const merged = plainModels(documentOf({ type: 'object' }, closed));
  expect(Object.keys(merged.components.schemas)).toEqual(['ErrorResponse', 'Thing']);
  expect(() => plainModels(documentOf({ type: 'string' }, closed))).toThrow(/Thing differs/);
});

/** Returns `METHOD /path` of each route, with `*` for each parameter, parsed from the printed tree of the router. */
function routesBelow(prefix: string): string[] {
  const tree = central.server.printRoutes({ commonPrefix: false, includeHooks: false });
  const parents: string[] = [];
  return tree.split('\n').flatMap((line) => {
    const [, indent = '', part = '', methods = ''] =
      /^([│ ]*)[├└]── (\S+)(?: \((.*)\))?$/.exec(line) ?? [];
    const depth = indent.length / 4;
    parents.splice(depth, Number.POSITIVE_INFINITY, part);
    const url = parents.join('').replaceAll(/:\w+(?:\|:\w+)*/g, '*');
    if (!url.startsWith(prefix) || url.startsWith(`${prefix}/_local/`)) return [];
    const path = url.slice(prefix.length) === '' ? '/' : url.slice(prefix.length);
    const named = methods.split(', ').filter((method) => method !== 'HEAD' && method !== '');
    return named.map((method) => `${method} ${path}`);
  });
}

it("describes the limits of the terminal's size", () => {
  const { parameters = [] } = document.paths['/pods/{id}/terminal']?.['get'] ?? {};
  for (const name of ['cols', 'rows']) {
    expect(parameters.find((parameter) => parameter.name === name)).toMatchObject({
      description: expect.stringContaining('1 to 1000; the same holds for a resize message'),
      schema: { type: 'integer', minimum: 1, maximum: 1_000 },
    });
  }
});
