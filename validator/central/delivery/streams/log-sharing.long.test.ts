import { afterEach, beforeEach, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import type { FakeHost } from '../../../../test/fakes/agents/fake-agents.ts';
import { fakeLine } from '../../../../test/fakes/agents/fake-log.ts';
import { eventually } from '../../../../test/fakes/eventually.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import { createTestMarket, type TestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { findAnyPod } from '../../market/pods/pod-access.ts';
import { createPodLogs } from './pod-logs.ts';
import type { StreamLimits } from './stream-limits.ts';

const FOLLOWERS = 100;
/** 4 MB in total: four times the capacity of a hub. */
const LINES = 20_000;
/** Lines that the node retains during a flood, and the pause of a slow reader after each batch. */
const RETAINED = 2_000;
const SLOW_MS = 200;
const PADDING = 'x'.repeat(120);

let market: TestMarket;
let account: TestAccount;
let host: FakeHost;
let podId: string;
let stopping: AbortController;

beforeEach(async () => {
  market = await createTestMarket();
  const node = await market.verifiedNode();
  account = await market.renter();
  host = market.agents.host(node.id);
  podId = (await market.rent(account, node.id)).body.id;
  await market.sync();
  stopping = new AbortController();
});
afterEach(async () => {
  stopping.abort();
  await market.close();
});

/** Creates streams on the system clock. */
function createStreams(limits?: StreamLimits) {
  const logs = createPodLogs({
    db: market.ports.db,
    clock: systemClock,
    agents: market.agents,
    pods: { findAnyPod },
    stopping: stopping.signal,
    ...(limits === undefined ? {} : { limits }),
  });
  return (query: { tail?: number; follow?: boolean; since?: string }, gone: AbortSignal) =>
    logs.open(
      {
        accountId: account.id,
        podId,
        query: { tail: 100, follow: true, ...query },
        lastEventId: undefined,
        revoked: NEVER,
      },
      gone,
    );
}

const NEVER = new AbortController().signal;
const line = (number: number) => fakeLine(number, `${number} ${PADDING}\n`);

/** Creates a reader that collects the numbers of lines and the notes, in order of arrival. */
function createReader(frames: AsyncGenerator<string>) {
  const numbers: number[] = [];
  const notes: unknown[] = [];
  return {
    numbers,
    notes,
    /** Reads until the line `last` has arrived, or one batch for `once`. */
    async read(last: number | 'once'): Promise<void> {
      for (;;) {
        const { value, done } = await frames.next();
        if (done === true) return;
        for (const text of value.split('\n\n').slice(0, -1)) {
          const frame = JSON.parse(text.slice('data: '.length));
          if ('log' in frame) numbers.push(Number(frame.id.split('.')[1]));
          else if ('meta' in frame) notes.push(frame);
        }
        if (last === 'once' || numbers.at(-1) === last) return;
      }
    },
    leave: () => frames.return(undefined),
  };
}

const from = (first: number, last: number) =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);

it('shares one stream from the node between all readers of a log, each of which receives every line exactly once', async () => {
  const open = createStreams();
  host.log.write(...from(1, 500).map(line));
  const stalled = createReader(await open({ tail: 10 }, NEVER));
  await stalled.read('once');

  let written = 500;
  let mostUpstreams = 0;
  const writing = (async () => {
    while (written < LINES) {
      host.log.write(...from(written + 1, written + 100).map(line));
      written += 100;
      mostUpstreams = Math.max(mostUpstreams, host.log.followers());
      await systemClock.sleep(1);
    }
  })();
  const readers = await Promise.all(
    Array.from({ length: FOLLOWERS - 1 }, async (_, index) => {
      await systemClock.sleep(3 * index);
      const wish = index % 3 === 0 ? { since: 'c.400.0' } : { tail: index };
      const reader = createReader(await open(wish, NEVER));
      await reader.read(LINES);
      return reader;
    }),
  );
  await writing;

  expect(mostUpstreams).toBe(1);
  for (const { numbers, notes } of readers) {
    expect(numbers).toEqual(from(numbers[0] ?? 0, LINES));
    expect(notes).toEqual([]);
  }
  expect(stalled.numbers.at(-1)).toBeLessThan(1_000);
  await stalled.read(LINES);
  expect(stalled.numbers).toEqual(from(491, LINES));
  await Promise.all([stalled, ...readers].map((reader) => reader.leave()));
  await eventually('the end of the stream', () => host.log.followers() === 0);
});

it('sends a gap to a reader that stalled for longer than the node retains the log files', async () => {
  const open = createStreams();
  host.log.write(line(1));
  const reader = createReader(await open({}, NEVER));
  await reader.read('once');
  await eventually('the stream', () => host.log.followers() === 1);
  for (let first = 2; first < 10_000; first += 1_000) {
    host.log.write(...from(first, first + 999).map(line));
    await systemClock.sleep(5);
  }
  host.log.rotate(9_000);
  await reader.read(10_001);
  expect(reader.notes).toEqual([{ meta: 'gap', reason: 'rotated' }]);
  expect(reader.numbers).toEqual([1, ...from(9_001, 10_001)]);
  await reader.leave();
});

it('sends a gap to a reader that is slower than a flood, and every line to a fast reader beside it', async () => {
  const open = createStreams();
  host.log.write(line(1));
  const slow = createReader(await open({}, NEVER));
  const fast = createReader(await open({}, NEVER));
  await Promise.all([slow.read('once'), fast.read('once')]);
  await eventually('the stream', () => host.log.followers() === 1);
  const flood = (async () => {
    for (let first = 2; first < LINES; first += RETAINED / 2) {
      host.log.write(...from(first, first + RETAINED / 2 - 1).map(line));
      await fast.read(first + RETAINED / 2 - 1);
      if (first > RETAINED) host.log.rotate(RETAINED / 2);
    }
  })();
  let isFlooding = true;
  const reading = (async () => {
    while (isFlooding) {
      await slow.read('once');
      await systemClock.sleep(SLOW_MS);
    }
  })();
  await flood;
  const last = fast.numbers.at(-1) ?? 0;
  expect(slow.numbers.at(-1)).toBeLessThan(last);
  isFlooding = false;
  await reading;
  await slow.read(last);
  expect(fast.numbers).toEqual(from(1, last));
  expect(fast.notes).toEqual([]);
  expect(slow.notes).toContainEqual({ meta: 'gap', reason: 'rotated' });
  // The slow reader is never further behind than the node retains, and receives the newest lines without a gap.
  expect(slow.numbers.slice(-RETAINED / 2)).toEqual(from(last - RETAINED / 2 + 1, last));
  expect(slow.numbers.length).toBeLessThan(fast.numbers.length);
  await Promise.all([slow.leave(), fast.leave()]);
});

it('limits the concurrent streams per pod and per account, including streams without `follow`, and releases ended streams', async () => {
  const open = createStreams({ perPod: 2, perAccount: 9, total: 9 });
  const gone = new AbortController();
  await open({}, gone.signal);
  const second = createReader(await open({ follow: false }, NEVER));
  await expect(open({}, NEVER)).rejects.toMatchObject({
    code: 'rate_limited',
    status: 429,
    options: { headers: { 'Retry-After': '5' } },
  });
  await second.read('once');
  await second.read('once');
  const third = createReader(await open({}, NEVER));
  await expect(open({}, NEVER)).rejects.toMatchObject({ code: 'rate_limited' });
  gone.abort();
  const fourth = createReader(await open({}, NEVER));
  await Promise.all([third.leave(), fourth.leave()]);

  const openFew = createStreams({ perPod: 9, perAccount: 1, total: 9 });
  const only = createReader(await openFew({}, NEVER));
  await expect(openFew({}, NEVER)).rejects.toMatchObject({ code: 'rate_limited' });
  await only.leave();
});
