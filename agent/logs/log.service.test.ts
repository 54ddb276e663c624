import { expect, it } from 'vitest';
import { LogFrame, type PodPhase } from '#shared/api/agent/pod.ts';
import type { LiveFrames } from '#shared/http/keep-alive.ts';
import { createHttpServer } from '#shared/http/server.ts';
import { naiveUtc, systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { type ContainerState, EngineError } from '../containers/engine/engine.ts';
import { registerLogRoutes } from './log.routes.ts';
import { createLogService, MAX_FOLLOWERS } from './log.service.ts';
import type { LogEngine } from './log-follow.ts';
import type { FrameText } from './log-frames.ts';

const POD_ID = '3f9f41a6-0002-4000-8000-000000000002';
const START_MS = 1_800_000_000_000;

/** An engine whose containers and output the test controls. */
function createFakeLogs() {
  const clock = createManualClock(START_MS);
  const containers = new Map<
    string,
    ContainerState & { entries: { ms: number; text: string }[] }
  >();
  let changed = Promise.withResolvers<void>();
  let pod: { containerId: string | null; phase: PodPhase } | null = null;
  const state = { isAway: false, reads: 0, open: 0, pulled: 0 };

  function touch(): void {
    changed.resolve();
    changed = Promise.withResolvers();
  }

  const engine: LogEngine = {
    async inspectContainer(id) {
      if (state.isAway) throw new EngineError('unavailable', 'away');
      return containers.get(id) ?? null;
    },
    async *containerLogs(id, { tail, follow, sinceMs = 0 }, signal) {
      state.reads += 1;
      state.open += 1;
      try {
        const entries = containers.get(id)?.entries ?? [];
        const later = entries.filter((entry) => entry.ms >= sinceMs).length;
        let next = entries.length - (tail === 'all' ? later : Math.min(later, tail));
        for (;;) {
          for (; next < entries.length; next += 1) {
            const { ms, text } = entries[next] ?? { ms: 0, text: '' };
            const line = `${naiveUtc(ms)}000Z ${text}\n`;
            state.pulled += 1;
            yield { stream: 'stdout', data: new TextEncoder().encode(line) };
          }
          if (state.isAway) throw new EngineError('unavailable', 'away');
          if (!follow || containers.get(id)?.status !== 'running') return;
          const left = Promise.withResolvers<void>();
          signal.addEventListener('abort', () => left.resolve(), { once: true });
          await Promise.race([changed.promise, left.promise]);
          signal.throwIfAborted();
        }
      } finally {
        state.open -= 1;
      }
    },
  };

  return {
    clock,
    engine,
    state,
    source: async () => pod,
    setPod(containerId: string | null, phase: PodPhase = 'running') {
      pod = { containerId, phase };
      touch();
    },
    removePod() {
      pod = null;
      touch();
    },
    start(id: string) {
      const entries = containers.get(id)?.entries ?? [];
      containers.set(id, {
        id,
        name: id,
        labels: {},
        status: 'running',
        exitCode: 0,
        oomKilled: false,
        startError: '',
        startedMs: clock.now(),
        finishedMs: 0,
        imageId: '',
        createdMs: 0,
        pid: 0,
        networks: ['podwright-net'],
        logPath: '',
        entries,
      });
      touch();
    },
    stop(id: string) {
      const container = containers.get(id);
      if (container !== undefined) container.status = 'exited';
      touch();
    },
    print(id: string, ...texts: string[]) {
      for (const text of texts) containers.get(id)?.entries.push({ ms: clock.now(), text });
      touch();
    },
    setAway(isAway: boolean) {
      state.isAway = isAway;
      touch();
    },
  };
}

const A = 'aaaaaaaaaaaa1111';
const B = 'bbbbbbbbbbbb2222';
const FOLLOW = { tail: 100, follow: true };

function setUp() {
  const fake = createFakeLogs();
  const sent = { bytes: 0, lines: 0, gaps: 0 };
  const logs = createLogService({
    clock: fake.clock,
    engine: fake.engine,
    podLogSource: fake.source,
    onFrames({ bytes, lines, dropped }) {
      sent.bytes += bytes;
      sent.lines += lines;
      if (dropped !== null) sent.gaps += 1;
    },
  });
  return { ...fake, logs, sent };
}

type Fake = ReturnType<typeof setUp>;

/** Returns the text of a line, other frames in angle brackets. */
const labelOf = (frame: LogFrame) =>
  'log' in frame ? frame.log.trimEnd() : 'meta' in frame ? `<${frame.meta}>` : '<idle>';

/** Parses the frames of an event stream. */
function framesOf(text: string): LogFrame[] {
  const data = text.split('\n\n').slice(0, -1);
  return data.map((frame) => LogFrame.parse(JSON.parse(frame.slice('data: '.length))));
}

/** Pulls `count` frames, advancing the clock while none arrives. */
async function pull(
  { clock }: Fake,
  stream: LiveFrames<FrameText>,
  count: number,
): Promise<string[]> {
  return (await pullFrames(clock, stream, count)).map(labelOf);
}

async function pullFrames(clock: Fake['clock'], stream: LiveFrames<FrameText>, count: number) {
  const frames: LogFrame[] = [];
  while (frames.length < count) {
    const next = stream.next();
    let result = await Promise.race([next, systemClock.sleep(2)]);
    while (result === undefined) {
      await clock.advance(250);
      result = await Promise.race([next, systemClock.sleep(2)]);
    }
    if (result.done === true) return frames;
    frames.push(...framesOf(result.value));
  }
  return frames;
}

it('without follow, sends the last lines and ends', async () => {
  const fake = setUp();
  fake.start(A);
  fake.setPod(A);
  fake.print(A, 'one', 'two', 'three');
  const stream = await fake.logs.open(POD_ID, { tail: 2, follow: false });
  expect(await pull(fake, stream, 10)).toEqual(['two', 'three']);
});

it('follows the output of a pod, sends idle frames, and ends with the pod', async () => {
  const fake = setUp();
  fake.start(A);
  fake.setPod(A);
  fake.print(A, 'one');
  const stream = await fake.logs.open(POD_ID, FOLLOW);
  expect(await pull(fake, stream, 1)).toEqual(['one']);
  const silentFromMs = fake.clock.now();
  expect(await pull(fake, stream, 1)).toEqual(['<idle>']);
  expect(fake.clock.now() - silentFromMs).toBe(15_000);
  fake.print(A, 'two');
  expect(await pull(fake, stream, 1)).toEqual(['two']);
  fake.removePod();
  fake.stop(A);
  expect(await pull(fake, stream, 10)).toEqual(['<end>']);
});

it('continues over a restart of the container without repeating lines', async () => {
  const fake = setUp();
  fake.start(A);
  fake.setPod(A);
  fake.print(A, 'one');
  const stream = await fake.logs.open(POD_ID, FOLLOW);
  expect(await pull(fake, stream, 1)).toEqual(['one']);
  const waiting = pull(fake, stream, 3);
  fake.print(A, 'the end');
  fake.stop(A);
  await fake.clock.advance(5_000);
  fake.start(A);
  fake.print(A, 'again');
  expect(await waiting).toEqual(['the end', '<restart>', 'again']);
});

it('continues with the container that replaces another', async () => {
  const fake = setUp();
  fake.start(A);
  fake.setPod(A);
  fake.print(A, 'old');
  const stream = await fake.logs.open(POD_ID, FOLLOW);
  expect(await pull(fake, stream, 1)).toEqual(['old']);
  fake.stop(A);
  fake.start(B);
  fake.print(B, 'new');
  fake.setPod(B);
  expect(await pull(fake, stream, 2)).toEqual(['<restart>', 'new']);
});

it('repeats no line when the engine answers again after an outage', async () => {
  const fake = setUp();
  fake.start(A);
  fake.setPod(A);
  fake.print(A, 'one', 'two', 'three');
  const stream = await fake.logs.open(POD_ID, FOLLOW);
  expect(await pull(fake, stream, 3)).toEqual(['one', 'two', 'three']);
  fake.setAway(true);
  expect(await pull(fake, stream, 1)).toEqual(['<idle>']);
  fake.setAway(false);
  fake.print(A, 'four');
  expect(await pull(fake, stream, 1)).toEqual(['four']);
  expect(fake.state.reads).toBe(2);
});

it('sends no old output to a reader of new lines when the container stops', async () => {
  const fake = setUp();
  fake.start(A);
  fake.setPod(A);
  fake.print(A, 'old');
  await fake.clock.advance(10);
  const stream = await fake.logs.open(POD_ID, { tail: 0, follow: true });
  expect(await pull(fake, stream, 1)).toEqual(['<idle>']);
  fake.stop(A);
  expect(await pull(fake, stream, 1)).toEqual(['<idle>']);
  await stream.return?.();
});

it('resumes after the last received frame', async () => {
  const fake = setUp();
  fake.start(A);
  fake.setPod(A);
  fake.print(A, 'one', 'two', 'three');
  const query = { tail: 100, follow: false };
  const all = await pullFrames(fake.clock, await fake.logs.open(POD_ID, query), 10);
  const second = all[1];
  const since = second !== undefined && 'id' in second ? second.id : '';
  const resumed = await fake.logs.open(POD_ID, { ...query, since });
  expect(await pull(fake, resumed, 10)).toEqual(['three']);
  const timed = await fake.logs.open(POD_ID, { ...query, since: String(START_MS + 1) });
  expect(await pull(fake, timed, 10)).toEqual([]);
});

it('sends a gap if the last received frame was deleted', async () => {
  const fake = setUp();
  fake.start(A);
  fake.setPod(A);
  fake.print(A, 'one');
  const from = (since: string) => fake.logs.open(POD_ID, { tail: 100, follow: false, since });
  const earlier = `aaaaaaaaaaaa.${START_MS - 5}000000.0`;
  expect(await pull(fake, await from(earlier), 10)).toEqual(['<gap>', 'one']);
  const other = `cccccccccccc.${START_MS}000000.0`;
  expect(await pull(fake, await from(other), 10)).toEqual(['<gap>', 'one']);
  expect(fake.sent.gaps).toBe(2);
});

it('counts sent lines, and does not count printed text that looks like a gap frame', async () => {
  const fake = setUp();
  fake.start(A);
  fake.setPod(A);
  fake.print(A, '{"meta":"gap"}');
  const frames = await fake.logs.open(POD_ID, { tail: 100, follow: false });
  expect(await pull(fake, frames, 10)).toEqual(['{"meta":"gap"}']);
  expect(fake.sent).toEqual({ bytes: expect.any(Number), lines: 1, gaps: 0 });
  expect(fake.sent.bytes).toBeGreaterThan(14);
});

it('waits for a container to start only with follow', async () => {
  const fake = setUp();
  fake.setPod(null, 'pulling');
  const short = await fake.logs.open(POD_ID, { tail: 100, follow: false });
  expect(await pull(fake, short, 10)).toEqual([]);
  const stream = await fake.logs.open(POD_ID, FOLLOW);
  expect(await pull(fake, stream, 1)).toEqual(['<idle>']);
  fake.start(A);
  fake.print(A, 'one');
  fake.setPod(A);
  expect(await pull(fake, stream, 1)).toEqual(['one']);
});

it('rejects an unknown pod, an invalid position, and an engine that does not answer', async () => {
  const fake = setUp();
  const query = { tail: 100, follow: false };
  await expect(fake.logs.open(POD_ID, query)).rejects.toMatchObject({ code: 'pod_not_found' });
  fake.setPod(A);
  const bad = fake.logs.open(POD_ID, { ...query, since: 'yesterday' });
  await expect(bad).rejects.toMatchObject({ code: 'validation_error' });
  fake.setAway(true);
  await expect(fake.logs.open(POD_ID, query)).rejects.toMatchObject({
    code: 'upstream_unavailable',
  });
});

it('limits the followers of a pod, and frees the slot of one that leaves while waiting', async () => {
  const fake = setUp();
  fake.start(A);
  fake.setPod(A);
  const streams: LiveFrames<FrameText>[] = [];
  for (let n = 0; n < MAX_FOLLOWERS; n += 1) streams.push(await fake.logs.open(POD_ID, FOLLOW));
  const waiting = streams.map((stream) => stream.next());
  await fake.clock.advance(0);
  expect(fake.state.open).toBe(MAX_FOLLOWERS);
  await expect(fake.logs.open(POD_ID, FOLLOW)).rejects.toMatchObject({ code: 'rate_limited' });
  await fake.logs.open(POD_ID, { tail: 1, follow: false });
  await streams[0]?.return?.();
  expect(await waiting[0]).toEqual({ done: true, value: undefined });
  await fake.logs.open(POD_ID, FOLLOW);
  fake.logs.close();
  expect(framesOf((await waiting[1])?.value)).toEqual([{ meta: 'end', reason: 'shutdown' }]);
  expect(await streams[1]?.next()).toEqual({ done: true, value: undefined });
  await fake.clock.advance(0);
  expect(fake.state.open).toBe(0);
});

it('pulls from the engine only as fast as its reader reads', async () => {
  const fake = setUp();
  fake.start(A);
  fake.setPod(A);
  fake.print(A, ...Array.from({ length: 1000 }, (_, n) => `line ${n}`));
  const stream = await fake.logs.open(POD_ID, { tail: 10_000, follow: true });
  await pull(fake, stream, 5);
  await fake.clock.advance(1_000);
  expect(fake.state.pulled).toBeLessThan(10);
  await stream.return?.();
});

it('streams server-sent events over HTTP', async () => {
  const fake = setUp();
  fake.start(A);
  fake.setPod(A);
  fake.print(A, 'one');
  const log = createLog({ name: 'test', level: 'silent' });
  const server = createHttpServer({
    log,
    clock: fake.clock,
    random: systemRandom,
    bodyLimitBytes: 1000,
  });
  registerLogRoutes(server, { logs: fake.logs });
  const response = await server.inject(`/v1/pods/${POD_ID}/logs?tail=5`);
  expect(response.headers['content-type']).toMatch('text/event-stream');
  const frame = {
    log: 'one\n',
    id: `aaaaaaaaaaaa.${START_MS}000000.0`,
    ts: '2027-01-15T08:00:00Z',
    stream: 'stdout',
  };
  expect(response.body).toBe(`data: ${JSON.stringify(frame)}\n\n`);
  const refused = await server.inject(`/v1/pods/${POD_ID}/logs?tail=10001`);
  expect(refused.statusCode).toBe(422);
});
