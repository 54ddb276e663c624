/**
 * Sends the example of every documented request to a central API: each must succeed with an answer that is described.
 */
import type { Readable } from 'node:stream';
import type { InjectOptions } from 'fastify';
import { afterAll, describe, expect, it } from 'vitest';
import { readDocuments } from '../docs/interface-documents.ts';
import { createExampleScene, type ExampleScene } from '../fakes/scenes/example-scene.ts';
import { DocumentedInterface, exampleOf, type Operation, operationsOf } from './documentation.ts';

/** Answer to a plain HTTP request of an operation whose success is a WebSocket. */
const UPGRADE_REQUIRED = 426;
const SWITCHING_PROTOCOLS = 101;

const requests = (await readDocuments())
  .flatMap((document) => operationsOf(DocumentedInterface.parse(document)))
  .flatMap(({ name, operation }) => {
    const example = exampleOf(operation);
    return example === null ? [] : [{ name, operation, example }];
  });

/** Scene of all requests that change nothing; null until the first of them. */
let shared: ExampleScene | null = null;
afterAll(() => shared?.close());

/** A callback of an OAuth login changes the account although its method is GET. */
const isRead = (name: string) => name.startsWith('GET ') && !name.endsWith('/callback');

async function sharedScene(): Promise<ExampleScene> {
  shared ??= await createExampleScene();
  return shared;
}

it('finds the examples', () => {
  expect(requests.length).toBeGreaterThan(60);
});

describe.each(requests)('$name', ({ name, operation, example }) => {
  it('accepts its example and answers as described', async () => {
    const scene = isRead(name) ? await sharedScene() : await createExampleScene();
    try {
      const request: InjectOptions = await scene.requestOf(name, example);
      const answer = await scene.market.server.inject({ ...request, payloadAsStream: true });
      const type = String(answer.headers['content-type']).split(';')[0] ?? '';
      const text = type === 'text/event-stream' ? '' : await textOf(answer.stream());
      answer.stream().destroy();
      const shown = text.slice(0, 600);
      expect([shown, expectedOf(operation)]).toEqual([
        shown,
        expect.arrayContaining([answer.statusCode]),
      ]);
      if (answer.statusCode === UPGRADE_REQUIRED) return;
      expect(Object.keys(operation.responses[answer.statusCode]?.content ?? {})).toContain(type);
    } finally {
      if (scene !== shared) await scene.close();
    }
  });
});

function expectedOf({ responses }: Operation): number[] {
  const statuses = Object.keys(responses).map(Number);
  return statuses.includes(SWITCHING_PROTOCOLS)
    ? [UPGRADE_REQUIRED]
    : statuses.filter((status) => status >= 200 && status < 300);
}

async function textOf(stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString('utf8');
}
