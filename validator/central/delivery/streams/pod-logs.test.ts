import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readSse } from '#shared/http/event-stream.ts';
import type { FakeHost } from '../../../../test/fakes/agents/fake-agents.ts';
import { fakeLine as line } from '../../../../test/fakes/agents/fake-log.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import { createTestMarket, type TestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';

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

function open(query: string, headers: Record<string, string> = account.key) {
  return market.server.inject({ url: `/api/pods/${podId}/logs?${query}`, headers });
}

/** Returns the JSON of every frame of a finished stream. */
async function framesOf(body: string): Promise<unknown[]> {
  const bytes = (async function* () {
    yield new TextEncoder().encode(body);
  })();
  return Array.fromAsync(readSse(bytes));
}

/** Advances the clock in small steps until a condition holds. */
async function until(isSo: () => boolean): Promise<void> {
  for (let step = 0; step < 200 && !isSo(); step += 1) {
    await market.clock.advance(100);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  if (!isSo()) throw new Error('the condition was never met');
}

/** Advances the clock in steps until the stream has ended. */
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

/** Deletes the pod and returns all frames of the stream. */
async function endOf(response: ReturnType<typeof open>): Promise<unknown[]> {
  await market.call('DELETE', `/pods/${podId}`, { headers: account.key });
  return framesOf((await finish(response)).body);
}

describe('the existing log', () => {
  it('consists of data lines and an end frame', async () => {
    host.log.write(line(1), line(2), line(3));
    const response = await open('tail=2');
    expect(response.headers).toMatchObject({
      'content-type': expect.stringContaining('text/event-stream'),
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      'x-request-id': expect.any(String),
    });
    for (const text of response.body.split('\n')) expect(text).toMatch(/^(data: \{.*\})?$/);
    const end = { meta: 'end', reason: 'complete' };
    expect(await framesOf(response.body)).toEqual([line(2), line(3), end]);
    expect(host.log.queries).toEqual([{ tail: 2, follow: false }]);
  });

  it("ends with the reason node_lost when the node's stream breaks", async () => {
    host.logFault = async function* () {
      yield line(1);
      throw new Error('connection lost');
    };
    const { body } = await open('');
    expect(await framesOf(body)).toEqual([line(1), { meta: 'end', reason: 'node_lost' }]);
  });

  it('starts after a given frame or time, which take precedence over `tail`', async () => {
    await open('tail=5&since=c.7.0');
    await open('since=1970-01-01T00:00:05Z');
    await open('', { ...account.key, 'last-event-id': 'c.9.0' });
    expect(host.log.queries.map(({ since }) => since)).toEqual(['c.7.0', '5000', 'c.9.0']);
  });

  it.each(['tail=-1', 'tail=10001', 'tail=x', 'follow=perhaps'])(
    'rejects the query %s',
    async (query) => {
      expect((await open(query)).statusCode).toBe(422);
    },
  );

  it('is empty while the pod is not on its node', async () => {
    host.pods.clear();
    expect(await framesOf((await open('')).body)).toEqual([{ meta: 'end', reason: 'complete' }]);
  });

  it('returns an error if the node does not answer', async () => {
    host.up = false;
    const response = await open('');
    expect(response.statusCode).toBe(502);
    expect(response.json().error.code).toBe('upstream_unavailable');
  });
});

describe('access to a log', () => {
  it('is rejected with 403 for another account, and with 404 if there is no such pod', async () => {
    const other = await market.signUp();
    expect((await open('', other.key)).statusCode).toBe(403);
    podId = '00000000-0000-4000-8000-000000000000';
    expect((await open('')).json().error.code).toBe('pod_not_found');
  });
});

describe('a followed log', () => {
  const end = { meta: 'end', reason: 'pod_deleted' };
  const isFollowed = () => host.log.followers() === 1;

  it('resumes after the last line when the connection to the node was lost', async () => {
    host.log.write(line(1), line(2));
    const response = open('follow=true');
    await until(isFollowed);
    host.log.cut('lost');
    await until(() => host.log.followers() === 0);
    host.log.write(line(3));
    await until(isFollowed);
    const gap = { meta: 'gap', reason: 'node_lost' };
    expect(await endOf(response)).toEqual([line(1), line(2), gap, line(3), end]);
    const [last] = host.log.queries.filter(({ follow }) => follow).slice(-1);
    expect(last).toEqual({ tail: 10_000, since: 'c.2.0', follow: true });
  });

  it('sends no gap after the agent itself has ended its stream', async () => {
    host.log.write(line(1));
    const response = open('follow=true');
    await until(isFollowed);
    host.log.cut('ended');
    await until(() => host.log.followers() === 0);
    host.log.write(line(2));
    await until(isFollowed);
    expect(await endOf(response)).toEqual([line(1), line(2), end]);
  });

  it('reconnects to a node that sends nothing', async () => {
    host.log.write(line(1));
    const response = open('follow=true');
    await until(isFollowed);
    const asked = host.log.queries.length;
    for (let s = 0; s < 60; s += 1) await market.clock.advance(1_000);
    expect(host.log.queries.length).toBe(asked + 1);
    const frames = await endOf(response);
    expect(frames).toContainEqual({ meta: 'gap', reason: 'node_lost' });
  });

  it('starts with new lines if `tail` is 0', async () => {
    host.log.write(line(1), line(2));
    const response = open('follow=true&tail=0');
    await until(isFollowed);
    host.log.write(line(3));
    expect(await endOf(response)).toEqual([line(3), end]);
  });

  it('starts at a given time or after a given frame', async () => {
    const at = (second: number) => ({ ...line(second), id: `c.${second * 1e9}.0` });
    host.log.write(at(1), at(2), at(3));
    const late = open('follow=true&since=1970-01-01T00:00:09Z');
    const after = open(`follow=true&since=${at(2).id}`);
    await until(isFollowed);
    host.log.write(at(8), at(9));
    expect(await endOf(after)).toEqual([at(3), at(8), at(9), end]);
    expect(await framesOf((await finish(late)).body)).toEqual([at(9), end]);
  });

  it('sends a gap for a position that no longer exists', async () => {
    host.log.write(line(1), line(2), line(3));
    host.log.rotate(2);
    const response = open('follow=true&since=c.1.0');
    await until(isFollowed);
    const gap = { meta: 'gap', reason: 'rotated' };
    expect(await endOf(response)).toEqual([gap, line(3), end]);
  });

  it('sends a gap for a malformed position', async () => {
    host.log.write(line(1), line(2));
    const response = open('follow=true&since=nonsense');
    await until(isFollowed);
    const gap = { meta: 'gap', reason: 'unknown_id' };
    const { body } = await open('', { ...account.key, 'last-event-id': 'x'.repeat(5_000) });
    expect(await framesOf(body)).toEqual([
      gap,
      line(1),
      line(2),
      { meta: 'end', reason: 'complete' },
    ]);
    expect(await endOf(response)).toEqual([gap, line(1), line(2), end]);
  });

  it('sends a keep-alive every 15 s, and ends within 5 s after the key is revoked', async () => {
    const response = open('follow=true');
    for (let step = 0; step < 8; step += 1) {
      await market.clock.advance(5_000);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const [key] = (await market.call('GET', '/keys', { headers: account.session })).body;
    await market.call('DELETE', `/keys/${key.id}`, { headers: account.session });
    await market.clock.advance(5_000);
    const { body } = await response;
    expect(await framesOf(body)).toEqual([{}, {}, { meta: 'end', reason: 'credential_revoked' }]);
  });

  it('waits for a node that does not answer yet', async () => {
    host.up = false;
    const response = open('follow=true');
    await until(() => host.log.queries.length >= 1);
    host.up = true;
    host.log.write(line(1));
    await until(isFollowed);
    expect(await endOf(response)).toEqual([line(1), end]);
  });

  it('ends when the server stops', async () => {
    host.log.write(line(1));
    const response = open('follow=true');
    await until(isFollowed);
    await market.central.close();
    expect(await framesOf((await response).body)).toEqual([
      line(1),
      { meta: 'end', reason: 'server_shutdown' },
    ]);
  });
});
