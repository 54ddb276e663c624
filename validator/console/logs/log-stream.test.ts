import { beforeEach, describe, expect, it } from 'vitest';
import { ApiFailure, unreachable } from '../api/failure.ts';
import { createLogFeed, type LogFeed } from './log-feed.ts';
import type { LogEntry } from './log-lines.ts';
import type { LogStart } from './log-start.ts';

const message = (n: number, log = 'c') =>
  JSON.stringify({
    log: `line ${n}\n`,
    id: `${log}.${n}.0`,
    ts: `2026-11-20T00:00:00.${String(n).padStart(9, '0')}Z`,
    stream: 'stdout',
  });

/** A server's side of a connection. */
class Socket {
  readonly CONNECTING = 0;
  readyState = 1;
  onopen: (() => void) | null = null;
  onmessage: ((message: { data: string }) => void) | null = null;
  onclose: ((closed: { code: number; reason: string }) => void) | null = null;
  isClosed = false;
  close(): void {
    this.isClosed = true;
  }
  send(...messages: string[]): void {
    for (const data of messages) this.onmessage?.({ data });
    frame();
  }
  drop(code = 1006, reason = ''): void {
    this.onclose?.({ code, reason });
  }
}

let frames: (() => void)[];
let timers: (() => void)[];
let pauses: number[];
let sockets: Socket[];
let starts: { podId: string; start: LogStart }[];
let refusal: ApiFailure | null;
let wake: () => void;
let cutEntries: LogEntry[];
let leave: AbortController;
beforeEach(() => {
  frames = [];
  timers = [];
  pauses = [];
  sockets = [];
  starts = [];
  refusal = null;
  cutEntries = [];
  leave = new AbortController();
});

function frame(): void {
  for (const run of frames.splice(0)) run();
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

function feedOf(podIds: string[] = ['pod'], entries = 10): LogFeed {
  const feed = createLogFeed(
    {
      async open(podId, start) {
        starts.push({ podId, start });
        if (refusal !== null) throw refusal;
        const socket = new Socket();
        sockets.push(socket);
        // The parts of a WebSocket that the stream uses.
        return socket as unknown as WebSocket;
      },
      soon(run) {
        frames.push(run);
        return () => {
          frames = frames.filter((each) => each !== run);
        };
      },
      after(_, run) {
        timers.push(run);
        return () => {
          timers = timers.filter((each) => each !== run);
        };
      },
      sleep(ms) {
        pauses.push(ms);
        return new Promise((resolve) => (wake = resolve));
      },
      readCut: async () => cutEntries,
    },
    podIds,
    { tail: 100 },
    { entries, chars: 1e9 },
  );
  void feed.run(leave.signal);
  return feed;
}

const numbersIn = ({ buffer }: LogFeed) => buffer.text(({ text }) => text.replace('line ', ''));
const nameOf = (feed: LogFeed) => feed.get().streams[0]?.name;

/** Wakes the stream from its pause; returns its next connection. */
async function reconnect(): Promise<Socket> {
  await settle();
  wake();
  await settle();
  const socket = sockets.at(-1);
  if (socket === undefined) throw new Error('no connection');
  return socket;
}

async function first(): Promise<Socket> {
  await settle();
  const [socket] = sockets;
  if (socket === undefined) throw new Error('no connection');
  return socket;
}

describe('a stream', () => {
  it('delivers the messages of a frame together', async () => {
    const feed = feedOf();
    const socket = await first();
    let changes = 0;
    feed.buffer.subscribe(() => (changes += 1));
    socket.send(message(1), '{}', message(2));
    expect([numbersIn(feed), changes]).toEqual(['1\n2', 1]);
  });

  it('continues after its last line without a repeated one', async () => {
    const feed = feedOf();
    (await first()).send(message(1), message(2));
    sockets[0]?.drop();
    const second = await reconnect();
    expect(nameOf(feed)).toBe('waiting');
    expect(starts.map(({ start }) => start)).toEqual([{ tail: 100 }, { since: 'c.2.0' }]);
    second.onopen?.();
    expect(nameOf(feed)).toBe('following');
    second.send('{"meta":"gap","reason":"unknown_id"}', message(1), message(2), message(3));
    second.send(message(1, 'd'));
    expect(numbersIn(feed)).toMatch(/^1\n2\nLines may be missing.*\n3\n1$/);
    expect(feed.buffer.at(2)).toMatchObject({ isGap: true, at: expect.stringMatching(/2Z$/) });
  });

  it('delivers what has arrived before the connection ended', async () => {
    const feed = feedOf();
    const socket = await first();
    socket.onmessage?.({ data: message(1) });
    socket.drop();
    expect(numbersIn(feed)).toBe('1');
  });

  it('connects again when the server is silent', async () => {
    feedOf();
    await first();
    expect(timers.length).toBe(1);
    timers[0]?.();
    await reconnect();
    expect([sockets.length, sockets[0]?.isClosed]).toEqual([2, true]);
  });

  it('waits longer after each failure, and briefly after a connection that has lasted without a line', async () => {
    feedOf();
    (await first()).drop();
    (await reconnect()).drop();
    const third = await reconnect();
    third.onopen?.();
    for (const run of timers.slice(-1)) run();
    third.drop();
    await settle();
    expect(pauses).toEqual([1_000, 2_000, 1_000]);
  });

  it('tries again while the server does not answer, is busy or restarts', async () => {
    const feed = feedOf();
    (await first()).send('{"meta":"end","reason":"server_shutdown"}');
    await settle();
    refusal = unreachable();
    wake();
    await settle();
    expect(feed.get().streams[0]).toMatchObject({ name: 'waiting', failure: refusal });
    refusal = null;
    (await reconnect()).drop(4429, 'rate_limited');
    await settle();
    expect(nameOf(feed)).toBe('waiting');
  });

  it.each([
    ['pod_deleted', 'ended'],
    ['credential_revoked', 'ended'],
  ])('ends with the reason %s', async (reason, name) => {
    const feed = feedOf();
    (await first()).send(message(1), JSON.stringify({ meta: 'end', reason }));
    await settle();
    expect([nameOf(feed), numbersIn(feed)]).toEqual([name, '1']);
  });

  it('fails if the API refuses it', async () => {
    const feed = feedOf();
    (await first()).drop(4403, 'forbidden');
    await settle();
    expect(feed.get().streams[0]).toMatchObject({
      name: 'failed',
      failure: expect.any(ApiFailure),
    });
  });

  it('continues after the log-in of an expired session', async () => {
    refusal = new ApiFailure('expired', { ...unreachable().facts, status: 401 });
    const feed = feedOf();
    await settle();
    expect(nameOf(feed)).toBe('failed');
    refusal = null;
    leave.abort();
    void feed.run(new AbortController().signal);
    (await first()).send(message(1));
    expect(numbersIn(feed)).toBe('1');
  });

  it('ends its connection with its view', async () => {
    feedOf();
    const socket = await first();
    leave.abort();
    expect(socket.isClosed).toBe(true);
    await settle();
    expect(sockets.length).toBe(1);
  });
});

describe('a view', () => {
  const send = (socket: Socket | undefined, from: number, to: number) => {
    for (let n = from; n <= to; n += 1) socket?.send(message(n));
  };

  it('shows the newest lines while it follows, and reads earlier ones again', async () => {
    const feed = feedOf();
    send(await first(), 1, 15);
    expect(feed.buffer.end() - feed.buffer.first()).toBeLessThanOrEqual(10);
    const gone = feed.buffer.cutEntries();
    expect(gone).toBeGreaterThan(0);
    const { at = '' } = feed.buffer.at(feed.buffer.first()) ?? {};
    cutEntries = [{ ...(feed.buffer.at(feed.buffer.first()) as LogEntry), text: 'again', at }];
    await feed.loadEarlier();
    expect(numbersIn(feed)).toMatch(/^again\n/);
    expect(feed.get()).toMatchObject({ isFollowing: false, history: 'idle' });
    // The newest line had to leave, so the stream continues after the one before.
    expect(nameOf(feed)).toBe('held');
    feed.follow();
    await settle();
    expect(starts.at(-1)?.start).toEqual({ since: 'c.14.0' });
    sockets.at(-1)?.send(message(15), message(16));
    expect(numbersIn(feed)).toMatch(/14\n15\n16$/);
  });

  it('holds the stream when it is full and does not follow, and loses nothing', async () => {
    const feed = feedOf();
    send(await first(), 1, 5);
    feed.pause();
    send(sockets[0], 6, 20);
    await settle();
    expect([nameOf(feed), sockets[0]?.isClosed]).toEqual(['held', true]);
    const kept = feed.buffer.end();
    expect(feed.get().newFrom).toBe(5);
    feed.follow();
    await settle();
    expect(starts.at(-1)?.start).toEqual({ since: `c.${kept}.0` });
    send(sockets.at(-1), kept + 1, 20);
    expect(numbersIn(feed)).toMatch(/19\n20$/);
    expect(feed.buffer.end()).toBe(20);
  });

  it('can skip to the newest lines, and marks it', async () => {
    const feed = feedOf();
    send(await first(), 1, 3);
    feed.skipToNewest();
    await settle();
    expect(starts.at(-1)?.start).toEqual({ tail: 1_000 });
    sockets.at(-1)?.send(message(90));
    expect(numbersIn(feed)).toBe('Lines were skipped here, on your request.\n90');
    expect(feed.buffer.cutEntries()).toBe(3);
  });

  it('can be cleared while the log continues', async () => {
    const feed = feedOf();
    send(await first(), 1, 3);
    feed.clear();
    send(sockets[0], 4, 4);
    expect([numbersIn(feed), sockets.length]).toEqual(['4', 1]);
  });

  it('shows an error of earlier lines, and continues', async () => {
    const feed = feedOf();
    send(await first(), 1, 3);
    feed.clear();
    cutEntries = null as unknown as LogEntry[];
    await feed.loadEarlier();
    expect(feed.get().history).toBeInstanceOf(ApiFailure);
    await settle();
    expect(sockets.length).toBe(2);
  });

  it('orders the lines of several pods by their times', async () => {
    const feed = feedOf(['a', 'b']);
    await settle();
    expect(starts.map(({ podId }) => podId)).toEqual(['a', 'b']);
    sockets[0]?.send(message(1), message(4));
    sockets[1]?.send(message(2, 'd'), message(3, 'd'));
    expect(numbersIn(feed)).toBe('1\n2\n3\n4');
    expect([0, 1, 2, 3].map((number) => feed.buffer.at(number)?.source)).toEqual([0, 1, 1, 0]);
  });
});
