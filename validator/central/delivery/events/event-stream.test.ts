import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import { type Frame, framesIn, framesOf } from '../../../../test/fakes/scenes/event-follower.ts';
import { createTestMarket, type TestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { watchDatabase } from '../../../../test/fakes/scenes/watched-database.ts';
import { createSeededRandom } from '../../../../test/fakes/seeded-random.ts';
import { findAnyPod, requireAnyOwnPod, requireOwnPod } from '../../market/pods/pod-access.ts';
import { createNotifier, withNotifier } from '../../platform/database/notifier.ts';
import type { Db } from '../../platform/database/tables.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { recordEvent } from './event.service.ts';
import { createEventStreams } from './event-stream.ts';

const POD = '11111111-1111-4111-8111-111111111111';
const NEVER = new AbortController().signal;
const WRITERS = 6;
const EVENTS_EACH = 50;

let market: TestMarket;
let account: TestAccount;
let base: string;

beforeEach(async () => {
  market = await createTestMarket();
  account = await market.signUp();
  base = await market.server.listen({ host: '127.0.0.1', port: 0 });
});
afterEach(() => market.close());

const ports = { clock: systemClock, random: systemRandom };

function record(db: Db, name: string, podId: string | null = null): Promise<void> {
  return recordEvent(db, ports, {
    accountId: account.id,
    podId,
    subEventType: 'pod-lifecycle.status',
    actor: SYSTEM_ACTOR,
    payload: { pod_name: name, node: null },
  });
}

function connect(query = '', headers: Record<string, string> = account.key): Promise<Response> {
  return fetch(`${base}/api/users/me/events/stream${query}`, { headers });
}

/** Advances the clock until the work is done. */
async function during<T>(work: Promise<T>): Promise<T> {
  let isDone = false;
  const done = work.finally(() => {
    isDone = true;
  });
  done.catch(() => undefined);
  while (!isDone) {
    await market.clock.advance(100);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return done;
}

/** Returns the next `count` frames of a stream. */
async function take(frames: AsyncGenerator<Frame>, count: number): Promise<Frame[]> {
  const taken: Frame[] = [];
  while (taken.length < count) {
    const { value, done } = await during(frames.next());
    if (done === true) break;
    taken.push(value);
  }
  return taken;
}

const nameOf = ({ data }: Frame) => JSON.parse(data ?? '').pod_name;
const ended = (reason: string) => ({
  id: null,
  event: 'end',
  data: JSON.stringify({ meta: 'end', reason }),
});

const POD_ACCESS = { findAnyPod, requireOwnPod, requireAnyOwnPod };

/** Creates streams on the system clock, which are notified of events recorded through `db`. */
function createStreams() {
  const notifier = createNotifier(systemClock);
  const stopping = new AbortController();
  const { log } = market.ports;
  const db = withNotifier(market.ports.db, notifier);
  const streams = createEventStreams({
    clock: systemClock,
    random: systemRandom,
    log,
    notifier,
    pods: POD_ACCESS,
    db,
    stopping: stopping.signal,
  });
  const open = (lastEventId?: string) =>
    streams.open(
      {
        accountId: account.id,
        query: { since: undefined, pod_id: undefined },
        lastEventId,
        revoked: NEVER,
      },
      NEVER,
    );
  return { db, open };
}

it('sends new events in the same form as the list, and ends when the server stops', async () => {
  await record(market.ports.db, 'before');
  const response = await connect();
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  });
  const frames = framesOf(response);
  const first = take(frames, 2);
  await record(market.ports.db, 'a');
  await record(market.ports.db, 'b', POD);
  const got = await first;
  const { body } = await market.call('GET', '/users/me/events?limit=2', { headers: account.key });
  expect(got.map(({ data }) => JSON.parse(data ?? ''))).toEqual(body.toReversed());
  expect(got.map(({ id, event }) => [id, event])).toEqual(
    body.toReversed().map((row: { id: string }) => [row.id, 'event']),
  );
  const last = take(frames, 1);
  await market.central.close();
  expect(await last).toEqual([ended('server_shutdown')]);
});

it('starts after an event or a time, and sends a gap for an unknown id', async () => {
  for (const name of ['a', 'b', 'c']) await record(market.ports.db, name);
  const [, b] = (await market.call('GET', '/users/me/events', { headers: account.key })).body;
  const names = async (count: number, query: string, headers: Record<string, string> = {}) => {
    const frames = framesOf(await connect(query, { ...account.key, ...headers }));
    const taken = await take(frames, count);
    await frames.return(undefined);
    return taken.map((frame) => (frame.event === 'gap' ? frame.data : nameOf(frame)));
  };
  expect(await names(1, `?since=${b.id}`)).toEqual(['c']);
  expect(await names(1, '?since=2020-01-01T00:00:00Z', { 'last-event-id': b.id })).toEqual(['c']);
  const gap = JSON.stringify({ meta: 'gap', reason: 'unknown_id' });
  const all = await names(3, '?since=2020-01-01T00:00:00Z');
  expect(await names(4, '', { 'last-event-id': 'x'.repeat(5_000) })).toEqual([gap, ...all]);
  expect(all).toEqual(['a', 'b', 'c']);

  const stranger = await market.signUp();
  const foreign = { ...stranger.key, 'last-event-id': b.id };
  const [theirs] = await take(framesOf(await connect('', foreign)), 1);
  expect(theirs?.event).toBe('gap');
});

it('starts with the first event at or after a time, even if the clocks of processes differ', async () => {
  const { db } = market.ports;
  for (const name of ['a', 'b', 'c', 'd']) await record(db, name);
  const seconds = [10, 30, 20, 40];
  const rows = await db.selectFrom('events').select('id').orderBy('seq').execute();
  for (const [index, { id }] of rows.entries()) {
    const created_at = (seconds[index] ?? 0) * 1_000;
    await db.updateTable('events').set({ created_at }).where('id', '=', id).execute();
  }
  await record(db, 'now');
  const names = async (second: number, count: number) => {
    const stream = await connect(`?since=1970-01-01T00:00:${second}Z`);
    return (await take(framesOf(stream), count)).map(nameOf);
  };
  expect(await names(10, 5)).toEqual(['a', 'b', 'c', 'd', 'now']);
  expect(await names(20, 4)).toEqual(['b', 'c', 'd', 'now']);
  expect(await names(30, 3)).toEqual(['b', 'd', 'now']);
  expect(await names(41, 1)).toEqual(['now']);
  const future = take(framesOf(await connect('?since=2999-01-01T00:00:00Z')), 1);
  await market.central.close();
  expect(await future).toEqual([ended('server_shutdown')]);
});

it('can be limited to one pod of the account, even after the pod has ended', async () => {
  const { db } = market.ports;
  const renter = await market.renter();
  const node = await market.verifiedNode({ gpus: 2, minimum: 1 });
  const rent = async () => (await market.rent(renter, node.id, { gpu_count: 1 })).body.id;
  const [pod, other] = [await rent(), await rent()];
  await market.call('DELETE', `/pods/${pod}`, { headers: renter.key });
  await market.sync();
  const listed = (await market.call('GET', `/pods/${other}/events`, { headers: renter.key })).body;
  const recorded = await db.selectFrom('events').select('id').where('pod_id', '=', pod).execute();
  const ids = async (podId: string, count: number, since = '2020-01-01T00:00:00Z') => {
    const stream = await connect(`?since=${since}&pod_id=${podId}`, renter.key);
    return (await take(framesOf(stream), count)).map(({ id }) => id);
  };
  expect(await ids(pod, recorded.length)).toEqual(recorded.map(({ id }) => id));
  expect(await ids(other, listed.length)).toEqual(listed.map(({ id }: { id: string }) => id));
  expect(await ids(other, 1, recorded[0]?.id)).toEqual([listed[0].id]);

  const foreign = await connect(`?pod_id=${pod}`);
  expect(foreign.status).toBe(404);
  expect(await foreign.json()).toMatchObject({ error: { code: 'pod_not_found' } });
});

it.each(['since=yesterday', 'since=12', 'pod_id=x'])(
  'returns 422 for the query %s',
  async (query) => {
    expect((await connect(`?${query}`)).status).toBe(422);
  },
);

it('ends a stream when its credential is revoked', async () => {
  expect((await connect('', {})).status).toBe(401);
  const [key] = (await market.call('GET', '/keys', { headers: account.session })).body;
  const frames = framesOf(await connect());
  await market.call('DELETE', `/keys/${key.id}`, { headers: account.session });
  expect(await take(frames, 2)).toEqual([ended('credential_revoked')]);
});

it('polls rarely while there are no events, and finds events whose notification was lost', async () => {
  const watched = watchDatabase(market.ports.db);
  const { agents, clock } = market;
  const quiet = await createTestMarket({ db: watched.db, agents, clock });
  base = await quiet.server.listen({ host: '127.0.0.1', port: 0 });
  const followers = await Promise.all(
    Array.from({ length: 20 }, async () => framesOf(await connect())),
  );
  const firsts = followers.map((frames) => frames.next());
  const before = watched.queries();
  for (let second = 0; second < 120; second += 1) {
    await clock.advance(1_000);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  // All twenty streams together cause two queries of the feed in 20 to 30 s, and one query of their key in 4 s.
  expect(watched.queries() - before).toBeLessThanOrEqual(2 * 7 + 31);
  await record(market.ports.db, 'untold');
  const told = await during(Promise.all(firsts));
  expect(told.map(({ value }) => (value === undefined ? null : nameOf(value)))).toEqual(
    followers.map(() => 'untold'),
  );
  await quiet.central.close();
});

it('accepts a stream ticket of the account once', async () => {
  const ask = (path: string) => market.call('POST', path, { headers: account.key });
  const { ticket } = (await ask('/users/me/stream-ticket')).body;
  expect((await connect(`?ticket=${ticket}`, {})).status).toBe(200);
  expect((await connect(`?ticket=${ticket}`, {})).status).toBe(401);
  const other = (await ask('/users/me/stream-ticket')).body.ticket;
  const list = await market.call('GET', `/users/me/events?ticket=${other}`);
  expect(list.status).toBe(401);
});

it('limits the concurrent streams of an account, and accepts another stream when one has ended', async () => {
  const { open } = createStreams();
  const streams = [];
  for (let n = 0; n < 20; n += 1) streams.push(await open());
  await expect(open()).rejects.toMatchObject({ code: 'rate_limited', status: 429 });
  await streams[0]?.next();
  await streams[0]?.return(undefined);
  const again = await open();
  await expect(open()).rejects.toMatchObject({ code: 'rate_limited' });
  await Promise.all([again, ...streams].map((stream) => stream.return(undefined)));
});

it('delivers every event exactly once to clients that resume at any point, and to clients that stall', async () => {
  const { db, open } = createStreams();
  const random = createSeededRandom(7);
  const stalled = await open();
  await stalled.next();
  await record(db, 'first');
  const [first] = await db.selectFrom('events').select('id').execute();

  // Concurrent transactions on PostgreSQL commit in a different order than they record events.
  const writing = Promise.all(
    Array.from({ length: WRITERS }, async (_, writer) => {
      for (let n = 0; n < EVENTS_EACH; n += 1) {
        await db.transaction().execute(async (tx) => {
          await record(tx, `${writer}.${n}`);
          await systemClock.sleep(random.int(5));
        });
      }
    }),
  );
  const all = WRITERS * EVENTS_EACH;
  const got: Frame[] = [];
  while (got.length < all) {
    const stream = await open(got.at(-1)?.id ?? first?.id);
    await stream.next();
    for (let isWhole = true; isWhole && got.length < all; ) {
      const { value, done } = await stream.next();
      if (done === true) break;
      const frames = framesIn(value);
      // Frames that were in transit when the connection broke did not arrive.
      isWhole = random.int(3) > 0;
      got.push(...(isWhole ? frames : frames.slice(0, random.int(frames.length + 1))));
    }
    await stream.return(undefined);
  }
  await writing;
  const recorded = await db.selectFrom('events').select('id').execute();
  const ids = recorded.map(({ id }) => id).filter((id) => id !== first?.id);
  expect(got.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());

  const read: Frame[] = [];
  for await (const text of stalled) if (read.push(...framesIn(text)) > all) break;
  expect(read.map(({ id }) => id)).toEqual([first?.id, ...got.map(({ id }) => id)]);
});
