import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { LogFrame } from '#shared/agent-api/pod.ts';
import { ApiError } from '#shared/errors.ts';
import { readSse } from '#shared/http/sse.ts';
import type { TestAccount } from '../../../test/fakes/central-fixture.ts';
import type { FakeHost, LogSource } from '../../../test/fakes/fake-agents.ts';
import { createTestMarket, type TestMarket } from '../../../test/fakes/market-fixture.ts';

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

function line(id: number): LogFrame {
  return { log: `line ${id}\n`, id: `c.${id}.0`, ts: '2026-11-20T00:00:00Z', stream: 'stdout' };
}

/** Says `frames` and ends. */
function ends(...frames: LogFrame[]): LogSource {
  return async function* () {
    yield* frames;
  };
}

/** Says `frames` and breaks off. */
function breaks(...frames: LogFrame[]): LogSource {
  return async function* () {
    yield* frames;
    throw new Error('connection lost');
  };
}

/** Says `frames` and stays open until its reader leaves. */
function stays(...frames: LogFrame[]): LogSource {
  return async function* (signal) {
    yield* frames;
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  };
}

function open(query: string, headers: Record<string, string> = account.key) {
  return market.server.inject({ url: `/api/pods/${podId}/logs?${query}`, headers });
}

/** The JSON of every frame of a finished stream. */
async function framesOf(body: string): Promise<unknown[]> {
  const bytes = (async function* () {
    yield new TextEncoder().encode(body);
  })();
  return Array.fromAsync(readSse(bytes));
}

/** Moves time in small steps until something has come about. */
async function until(isSo: () => boolean): Promise<void> {
  for (let step = 0; step < 200 && !isSo(); step += 1) {
    await market.clock.advance(100);
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (!isSo()) throw new Error('it does not come about');
}

/** Moves time in steps until the stream has ended. */
async function finish(response: ReturnType<typeof open>) {
  let ended = false;
  const answer = response
    .then((value) => value)
    .finally(() => {
      ended = true;
    });
  await until(() => ended);
  return answer;
}

describe('what is there', () => {
  it('is sent as data lines only, and closed with an end', async () => {
    host.logs = [ends({ meta: 'start' }, line(1), {}, line(2))];
    const response = await open('tail=5');
    expect(response.headers).toMatchObject({
      'content-type': expect.stringContaining('text/event-stream'),
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-request-id': expect.any(String),
    });
    for (const text of response.body.split('\n')) expect(text).toMatch(/^(data: \{.*\})?$/);
    expect(await framesOf(response.body)).toEqual([
      { meta: 'start' },
      line(1),
      line(2),
      { meta: 'end', reason: 'complete' },
    ]);
    expect(host.logQueries).toEqual([{ tail: 5, follow: false }]);
  });

  it('is said to be incomplete when the node broke off', async () => {
    host.logs = [breaks(line(1))];
    const { body } = await open('');
    expect(await framesOf(body)).toEqual([line(1), { meta: 'end', reason: 'node_lost' }]);
  });

  it('begins after a frame or a time, which win over the tail', async () => {
    host.logs = [ends(), ends(), ends()];
    await open('tail=5&since=c.7.0');
    await open('since=1970-01-01T00:00:05Z');
    await open('', { ...account.key, 'last-event-id': 'c.9.0' });
    expect(host.logQueries.map((query) => query['since'])).toEqual(['c.7.0', '5000', 'c.9.0']);
  });

  it.each(['tail=-1', 'tail=10001', 'tail=x', 'follow=perhaps'])('refuses %s', async (query) => {
    expect((await open(query)).statusCode).toBe(422);
  });

  it('is nothing while the pod is not on its node', async () => {
    host.pods.clear();
    expect(await framesOf((await open('')).body)).toEqual([{ meta: 'end', reason: 'complete' }]);
  });

  it('cannot be had from a silent node', async () => {
    host.up = false;
    const response = await open('');
    expect(response.statusCode).toBe(502);
    expect(response.json().error.code).toBe('upstream_unavailable');
  });
});

describe('whose log it is', () => {
  it('is forbidden for another account, and not found for no pod', async () => {
    const other = await market.signUp();
    expect((await open('', other.key)).statusCode).toBe(403);
    podId = '00000000-0000-4000-8000-000000000000';
    expect((await open('')).json().error.code).toBe('pod_not_found');
  });
});

describe('a log that is followed', () => {
  it('goes on after the last line when the node was lost', async () => {
    host.logs = [breaks(line(1), line(2)), stays(line(3))];
    const response = open('follow=true');
    await until(() => host.logQueries.length === 2);
    await market.call('DELETE', `/pods/${podId}`, { headers: account.key });
    const { body } = await finish(response);
    expect(await framesOf(body)).toEqual([
      line(1),
      line(2),
      { meta: 'gap', reason: 'node_lost' },
      line(3),
      { meta: 'end', reason: 'pod_deleted' },
    ]);
    expect(host.logQueries.at(-1)).toEqual({ tail: 10_000, since: 'c.2.0', follow: true });
  });

  it('shows no gap where the agent itself ended its stream', async () => {
    host.logs = [ends(line(1), { meta: 'end' }), stays(line(2))];
    const response = open('follow=true');
    await until(() => host.logs.length === 0);
    await market.call('DELETE', `/pods/${podId}`, { headers: account.key });
    const { body } = await finish(response);
    expect(await framesOf(body)).toEqual([
      line(1),
      line(2),
      { meta: 'end', reason: 'pod_deleted' },
    ]);
  });

  it('is kept alive every 15 s and ends within 5 s of a revoked key', async () => {
    host.logs = [stays()];
    const response = open('follow=true');
    for (let step = 0; step < 8; step += 1) {
      await market.clock.advance(5_000);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    const [key] = (await market.call('GET', '/keys', { headers: account.session })).body;
    await market.call('DELETE', `/keys/${key.id}`, { headers: account.session });
    await market.clock.advance(5_000);
    const { body } = await response;
    expect(await framesOf(body)).toEqual([{}, {}, { meta: 'end', reason: 'credential_revoked' }]);
  });

  it('waits for a node that is not there yet', async () => {
    host.up = false;
    const response = open('follow=true');
    await until(() => host.logQueries.length === 1);
    host.up = true;
    host.logs = [stays(line(1))];
    await until(() => host.logs.length === 0);
    await market.call('DELETE', `/pods/${podId}`, { headers: account.key });
    const { body } = await finish(response);
    expect(await framesOf(body)).toEqual([line(1), { meta: 'end', reason: 'pod_deleted' }]);
  });

  it('ends when the server stops', async () => {
    host.logs = [stays(line(1))];
    const response = open('follow=true');
    await new Promise((resolve) => setTimeout(resolve, 20));
    await market.central.close();
    expect(await framesOf((await response).body)).toEqual([
      line(1),
      { meta: 'end', reason: 'server_shutdown' },
    ]);
  });
});

it('tells a reader too many to come back, instead of leaving it waiting', async () => {
  host.logs.push(() => {
    throw new ApiError('rate_limited', 'At most 10 readers may follow a pod');
  });
  const response = await open('follow=true');
  expect(response.statusCode).toBe(429);
  expect(response.headers['retry-after']).toBe('5');
  expect(response.json().error).toMatchObject({ code: 'rate_limited' });
});
