/**
 * Every operation, field and request of the OpenAPI documents is described, and `/docs` shows them without another
 * host.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DOCUMENTS } from '../docs/interface-documents.ts';
import { createTestCentral, type TestCentral } from '../fakes/scenes/central-fixture.ts';
import {
  DocumentedInterface,
  requestsWithoutExample,
  undescribedModels,
  undescribedOperations,
} from './documentation.ts';

let central: TestCentral;
beforeAll(async () => {
  central = await createTestCentral();
});
afterAll(() => central.close());

describe.each(DOCUMENTS)('%s', (url) => {
  let document: DocumentedInterface;
  beforeAll(async () => {
    document = DocumentedInterface.parse((await central.server.inject({ url })).json());
  });

  it('describes every operation: summary, effects, caller, retries, parameters and answers', () => {
    expect(undescribedOperations(document)).toEqual([]);
  });

  it('describes every field of every model', () => {
    expect(undescribedModels(document)).toEqual([]);
  });

  it('has an example for every body and every query', () => {
    expect(requestsWithoutExample(document)).toEqual([]);
  });
});

it('finds a missing summary, field and example', () => {
  const document = DocumentedInterface.parse({
    servers: [{ url: '/api' }],
    paths: {
      '/x': {
        post: {
          description: 'Does one thing.\n\n**Caller:** Anyone.\n\n**Retry:** Safe.',
          parameters: [{ name: 'q', in: 'query' }],
          requestBody: { content: { 'application/json': { schema: {} } } },
          responses: { 200: { content: { 'application/json': { schema: {} } } } },
        },
      },
    },
    components: {
      schemas: { X: { properties: { a: { items: { properties: { b: {} } } } } } },
    },
  });
  expect(undescribedOperations(document)).toEqual(['POST /api/x: summary', 'POST /api/x: query q']);
  expect(undescribedModels(document)).toEqual(['X.a', 'X.a.b']);
  expect(requestsWithoutExample(document)).toEqual(['POST /api/x: body', 'POST /api/x: query']);
});
