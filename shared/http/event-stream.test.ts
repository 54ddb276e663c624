import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { dataFrame, readSse, type SseSource, sendSse } from './event-stream.ts';
import { createHttpServer, type HttpServer } from './server.ts';

const servers: HttpServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

async function serve(source: () => SseSource, send = sendSse): Promise<string> {
  const log = createLog({ name: 'test', level: 'silent' });
  const server = createHttpServer({
    log,
    clock: systemClock,
    random: systemRandom,
    bodyLimitBytes: 1000,
  });
  server.get('/events', (_request, reply) => send(reply, source()));
  servers.push(server);
  return server.listen({ host: '127.0.0.1', port: 0 });
}

async function* generated(count: number, size: number, state: { pulled: number; ended: boolean }) {
  try {
    for (; state.pulled < count; state.pulled += 1) {
      yield dataFrame({ n: state.pulled, text: 'x'.repeat(size) });
    }
  } finally {
    state.ended = true;
  }
}

it('sends every value in order, including line breaks and control characters', async () => {
  const values = [{ log: 'a\nb\r\n', n: 1 }, {}, { text: 'ü\u2028\u0000' }];
  const base = await serve(async function* () {
    for (const value of values) yield dataFrame(value);
  });
  const response = await fetch(`${base}/events`);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
    'x-request-id': expect.stringMatching(/.{8}/),
  });
  const read: unknown[] = [];
  for await (const value of readSse(response.body ?? new ReadableStream())) read.push(value);
  expect(read).toEqual(values);
});

it('pulls the source only while the client reads, and closes it when the client disconnects', async () => {
  const state = { pulled: 0, ended: false };
  const base = await serve(() => generated(1_000_000, 10_000, state));
  const socket = connect(Number(new URL(base).port), '127.0.0.1');
  socket.pause();
  socket.write('GET /events HTTP/1.1\r\nHost: x\r\n\r\n');
  let before = -1;
  while (before !== state.pulled || state.pulled === 0) {
    before = state.pulled;
    await systemClock.sleep(200);
  }
  // Of 10 GB, only the socket buffers of both ends are filled.
  expect(state.pulled * 10_000).toBeLessThan(20_000_000);
  expect(state.ended).toBe(false);
  socket.destroy();
  while (!state.ended) await systemClock.sleep(10);
});

it('pulls nothing for a client that has already disconnected, and ends', async () => {
  const state = { pulled: 0, ended: false };
  const arrived = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  const base = await serve(
    () => generated(1_000_000, 10_000, state),
    async (reply, source) => {
      arrived.resolve();
      await once(reply.raw, 'close');
      await sendSse(reply, source).then(over.resolve, over.reject);
    },
  );
  const socket = connect(Number(new URL(base).port), '127.0.0.1');
  socket.write('GET /events HTTP/1.1\r\nHost: x\r\n\r\n');
  await arrived.promise;
  socket.destroy();
  await over.promise;
  expect(state.pulled).toBe(0);
});

it('responds to HEAD with headers only and keeps the connection', async () => {
  const state = { pulled: 0, ended: false };
  const base = await serve(() => generated(1_000_000, 10_000, state));
  const socket = connect(Number(new URL(base).port), '127.0.0.1');
  for (let n = 0; n < 2; n += 1) {
    socket.write('HEAD /events HTTP/1.1\r\nHost: x\r\n\r\n');
    const [head] = await once(socket, 'data');
    expect(String(head)).toMatch(/^HTTP\/1\.1 200 OK\r\n.*text\/event-stream.*\r\n\r\n$/s);
  }
  expect(state.pulled).toBe(0);
  socket.destroy();
});

it('closes the stream when its source fails', async () => {
  const base = await serve(async function* () {
    yield dataFrame(1);
    throw new Error('broken');
  });
  const text = await (await fetch(`${base}/events`)).text();
  expect(text).toBe('data: 1\n\n');
});

async function* chunks(...texts: (string | Uint8Array)[]) {
  for (const text of texts) {
    yield typeof text === 'string' ? new TextEncoder().encode(text) : text;
  }
}

async function readAll(body: AsyncIterable<Uint8Array>): Promise<unknown[]> {
  const values: unknown[] = [];
  for await (const value of readSse(body)) values.push(value);
  return values;
}

it('parses frames across chunk boundaries and skips other lines', async () => {
  const split = new TextEncoder().encode('data: {"t":"ü"}\n\n');
  const values = await readAll(
    chunks(
      ': comment\n\nevent: log\nid: 1\ndata: 1\n',
      '\ndata: [\ndata: 2]\n\n',
      split.subarray(0, 13),
      split.subarray(13),
      'data: "unfinished"',
    ),
  );
  expect(values).toEqual([1, [2], { t: 'ü' }]);
});

it('rejects an endless frame and one that is not JSON', async () => {
  const endless = chunks(...Array.from({ length: 20 }, () => `data: ${'x'.repeat(100_000)}`));
  await expect(readAll(endless)).rejects.toThrow(/too long/);
  await expect(readAll(chunks('data: {\n\n'))).rejects.toThrow(SyntaxError);
});
