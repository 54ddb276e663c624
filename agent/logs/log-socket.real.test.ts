import { afterAll, beforeAll, expect, it } from 'vitest';
import type { WebSocket } from 'ws';
import { openLog } from '../../test/bench/log-pod.ts';
import { type WrittenLog, writeLog } from '../../test/fakes/agents/written-log.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { upgrade } from '../../test/fakes/raw-upgrade.ts';
import { MAX_FOLLOWERS } from './log.service.ts';

let log: WrittenLog;
beforeAll(async () => {
  log = await writeLog(1_000);
});
afterAll(() => log.close());

/** Collects text messages and the close code. */
async function readAll(socket: WebSocket): Promise<{ messages: string[]; code: number }> {
  const messages: string[] = [];
  socket.on('message', (data, isBinary) => {
    if (isBinary) throw new Error('expected a text message');
    messages.push(String(data));
  });
  const closed = new Promise<number>((resolve) => socket.once('close', resolve));
  socket.resume();
  return { code: await closed, messages };
}

it('sends the frames of the event stream one by one, and resumes after any of them', async () => {
  const sse = await log.agent.send({ method: 'GET', path: `/v1/pods/${log.pod.id}/logs?tail=500` });
  const expected = (await sse.text())
    .split('\n\n')
    .slice(0, -1)
    .map((frame) => frame.slice('data: '.length));
  expect(expected).toHaveLength(500);
  expect(await readAll(await log.open('tail=500'))).toEqual({ code: 1000, messages: expected });
  const { id } = JSON.parse(expected[399] ?? '');
  expect((await readAll(await log.open(`since=${id}`))).messages).toEqual(expected.slice(400));
});

it('counts its followers together with those of event streams', async () => {
  const leave = new AbortController();
  const path = `/v1/pods/${log.pod.id}/logs?follow=true&tail=1`;
  const stream = await openLog(log.agent, log.pod.id, 'follow=true&tail=1', leave.signal);
  await stream.next();
  const sockets = await Promise.all(
    Array.from({ length: MAX_FOLLOWERS - 1 }, () => log.open('follow=true&tail=1')),
  );
  const refused = log.open('follow=true');
  await expect(refused).rejects.toMatchObject({ code: 'rate_limited', status: 429 });
  expect((await log.agent.send({ method: 'GET', path })).status).toBe(429);
  for (const socket of sockets) socket.terminate();
  leave.abort();
  const next = await eventually('a free follower slot', () =>
    log.open('follow=true').catch(() => null),
  );
  next.terminate();
});

it('closes the socket of a client that sends a message, with a separate close code for a message that is too large', async () => {
  for (const [text, code] of [
    ['hello', 1008],
    ['x'.repeat(2_000), 1009],
  ] as const) {
    const socket = await log.open('follow=true&tail=0');
    socket.send(text);
    expect((await readAll(socket)).code).toBe(code);
  }
});

it('rejects a missing signature, a reused one, and an incomplete handshake', async () => {
  const path = `/v1/pods/${log.pod.id}/logs?tail=1`;
  const url = log.agent.origin + path;
  expect(await upgrade(url)).toMatchObject({ status: 401, code: 'auth_failed' });
  const headers = await log.agent.signedHeaders(path);
  expect((await upgrade(url, headers)).status).toBe(101);
  expect(await upgrade(url, headers)).toMatchObject({ status: 401, code: 'auth_failed' });
  const broken = { ...(await log.agent.signedHeaders(path)), 'sec-websocket-key': 'short' };
  expect(await upgrade(url, broken)).toMatchObject({ status: 400, code: 'bad_request' });
});

it('sends the end frame when the agent stops', async () => {
  const socket = await log.open('follow=true&tail=0');
  const reading = readAll(socket);
  await log.agent.stop();
  const { code, messages } = await reading;
  expect(messages.map((text) => JSON.parse(text))).toEqual([{ meta: 'end', reason: 'shutdown' }]);
  expect(code).toBe(1000);
});
