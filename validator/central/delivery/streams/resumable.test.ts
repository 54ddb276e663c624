import { afterEach, beforeEach, expect, it } from 'vitest';
import type { FakeHost } from '../../../../test/fakes/agents/fake-agents.ts';
import { fakeLine as line } from '../../../../test/fakes/agents/fake-log.ts';
import { eventually } from '../../../../test/fakes/eventually.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import { createTestMarket, type TestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { eventFrame, resumableLog, wantsResumable } from './resumable.ts';

let market: TestMarket;
let account: TestAccount;
let host: FakeHost;
let podId: string;

beforeEach(async () => {
  market = await createTestMarket();
  const node = await market.verifiedNode();
  account = await market.renter();
  host = market.agents.host(node.id);
  podId = (await market.rent(account, node.id)).body.id;
  await market.sync();
});
afterEach(() => market.close());

function open(query: string, headers: Record<string, string> = {}) {
  const url = `/api/pods/${podId}/logs?${query}`;
  return market.server.inject({ url, headers: { ...account.key, ...headers } });
}

const data = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;
const logged = (number: number) => `id: c.${number}.0\nevent: log\n${data(line(number))}`;
const ended = (reason: string) => `event: end\n${data({ meta: 'end', reason })}`;
const RETRY = 'retry: 2000\n\n';

it('adds ids and event names to the same JSON in the resumable form, and resumes after the last id', async () => {
  host.log.write(line(1), line(2), line(3));
  const first = await open('tail=2&format=events');
  expect(first.headers['content-type']).toBe('text/event-stream; charset=utf-8');
  expect(first.body).toBe(RETRY + logged(2) + logged(3) + ended('complete'));
  const accept = 'text/event-stream; profile=resumable';
  const rest = await open('', { accept, 'last-event-id': 'c.2.0' });
  expect(rest.body).toBe(RETRY + logged(3) + ended('complete'));
  host.log.rotate(2);
  const late = await open('follow=false&since=c.1.0', { accept });
  const gap = `event: gap\n${data({ meta: 'gap', reason: 'rotated' })}`;
  expect(late.body).toBe(RETRY + gap + logged(3) + ended('complete'));
});

it('sends the resumable form only if the client requests it', async () => {
  host.log.write(line(1));
  for (const accept of ['*/*', 'text/event-stream', 'text/html; profile=resumable']) {
    const { body } = await open('', { accept });
    expect(body).toBe(data(line(1)) + data({ meta: 'end', reason: 'complete' }));
  }
  expect((await open('format=sse')).statusCode).toBe(422);
});

it('ends a stream with `server_shutdown` when the server stops, so that clients reconnect', async () => {
  const response = open('follow=true&tail=0&format=events');
  await eventually('the stream', () => host.log.followers() === 1);
  await market.central.close();
  expect((await response).body).toBe(`${RETRY}${RETRY}${ended('server_shutdown')}`);
});

it('transmits any text unchanged in both forms', async () => {
  const texts = [
    'progress\r 50%\r100%\r\n',
    'binary \u0000\u0001\ufffd\ufffd\n',
    '\u001b[31mred\u001b[0m\u2028\n',
    'data: x\\n\\nid: 9\n',
    `${'m'.repeat(1024 * 1024)}\n`,
  ];
  const lines = texts.map((text, index) => line(index + 1, text));
  host.log.write(...lines);
  const end = { meta: 'end', reason: 'complete' };
  expect((await open('')).body).toBe([...lines, end].map(data).join(''));
  const events = lines.map((frame) => `id: ${frame.id}\nevent: log\n${data(frame)}`);
  expect((await open('format=events')).body).toBe(RETRY + events.join('') + ended('complete'));
  expect((await open('tail=0')).body).toBe(data(end));
});

it('sends comments as keep-alives in the resumable form, and omits ids that contain line breaks or are too long', async () => {
  const frame = { ...line(1), id: 'a\nevent: end\ndata: {}' };
  async function* frames() {
    yield data(frame) + data({ meta: 'restart' }) + data({});
  }
  const sent = await Array.fromAsync(resumableLog(frames()));
  const restart = `event: meta\n${data({ meta: 'restart' })}`;
  expect(sent).toEqual([RETRY, `event: log\n${data(frame)}${restart}: ka\n\n`]);
  expect(eventFrame('log', 'x'.repeat(101), 'data: 1\n\n')).toBe('event: log\ndata: 1\n\n');
});

it.each([
  ['text/event-stream;profile="resumable"', true],
  ['text/html, Text/Event-Stream ; q=1; Profile=Resumable', true],
  ['text/event-stream, text/plain;profile=resumable', false],
  ['text/event-stream; profile=resumable2', false],
  [undefined, false],
])('detects a request for the resumable form in the Accept header %s', (accept, isWanted) => {
  expect(wantsResumable(undefined, accept)).toBe(isWanted);
});
