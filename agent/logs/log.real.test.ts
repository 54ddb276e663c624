import { afterEach, describe, expect, inject, it } from 'vitest';
import { LogFrame } from '#shared/api/agent/pod.ts';
import type { LiveFrames } from '#shared/http/keep-alive.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createDockerodeEngine } from '../containers/engine/dockerode-engine.ts';
import { LABELS } from '../containers/engine/engine.ts';
import { ensureBuiltinImage } from '../containers/images/builtin-image.ts';
import { createLogService } from './log.service.ts';
import type { LogEngine } from './log-follow.ts';
import type { FrameText } from './log-frames.ts';

const LINES = 60_000;
const POD_ID = '3f9f41a6-0002-4000-8000-000000000003';
const NEVER = new AbortController().signal;
const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
const scope = { [LABELS.managed]: '1', [LABELS.executor]: systemRandom.uuid() };
/** The lines fill two rotations; the engine deletes none of them. */
const SMALL_FILES = { maxBytes: 2_400_000, count: 3 };

const writes = (lines: number) =>
  `awk 'BEGIN { for (i = 1; i <= ${lines}; i++) printf "%06d at full speed\\n", i }'`;

afterEach(async () => {
  for (const { id } of await engine.listContainers(scope)) await engine.removeContainer(id);
});

async function startContainer(script: string, logFiles = SMALL_FILES): Promise<string> {
  const id = await engine.createContainer({
    name: `logs-${systemRandom.uuid()}`,
    image: await ensureBuiltinImage(engine, '/bin/busybox'),
    labels: { ...scope, 'io.podwright.test-run': inject('testRun') },
    entrypoint: ['sh', '-c'],
    command: [script],
    environment: {},
    network: null,
    ports: [],
    gpuUuids: [],
    limits: { cpuCores: 1, memoryBytes: 2 ** 26, shmBytes: 2 ** 20, pids: 64 },
    stopGraceSeconds: 0,
    logFiles,
  });
  await engine.startContainer(id);
  return id;
}

function serviceFor(containerId: string, over: LogEngine = engine) {
  return createLogService({
    clock: systemClock,
    engine: over,
    podLogSource: async () => ({ containerId, phase: 'running' }),
  });
}

/** Reads frames until `count` lines have arrived or the stream has ended. */
async function take(
  stream: LiveFrames<FrameText>,
  count = Number.POSITIVE_INFINITY,
): Promise<LogFrame[]> {
  const frames: LogFrame[] = [];
  let lines = 0;
  for await (const text of stream) {
    for (const part of text.split('\n\n').slice(0, -1)) {
      const frame = LogFrame.parse(JSON.parse(part.slice('data: '.length)));
      frames.push(frame);
      if ('log' in frame) lines += 1;
    }
    if (lines >= count) break;
  }
  return frames;
}

const numbers = (frames: LogFrame[]) =>
  frames.map((frame) => ('log' in frame ? Number.parseInt(frame.log, 10) : -1));
const upTo = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, n) => from + n);

describe('a container that writes at full speed over rotations', () => {
  it('sends each line once to a follower from the start and to a follower that starts later', async () => {
    const id = await startContainer(`${writes(LINES)}; exec sleep 1000`);
    const logs = serviceFor(id);
    const followed = await take(
      await logs.open(POD_ID, { tail: 0, since: '0', follow: true }),
      LINES,
    );
    expect(numbers(followed)).toEqual(upTo(1, LINES));

    const open = (query: object) => logs.open(POD_ID, { tail: 100, follow: false, ...query });
    expect(await take(await open({ since: '0' }))).toEqual(followed);
    for (const tail of [0, 1, 100, 10_000]) {
      expect(await take(await open({ tail }))).toEqual(followed.slice(LINES - tail));
    }
    for (const number of [1, 23_333, 45_000, LINES]) {
      const seen = followed[number - 1];
      const since = seen !== undefined && 'id' in seen ? seen.id : '';
      expect(numbers(await take(await open({ since })))).toEqual(upTo(number + 1, LINES));
    }
  });

  it('is not slowed by a stalled reader, which then continues at its position', async () => {
    const id = await startContainer(writes(LINES));
    const logs = serviceFor(id);
    const stalled = await logs.open(POD_ID, { tail: 0, since: '0', follow: true });
    const first = await stalled.next();
    expect(first.done).toBe(false);
    expect(await engine.waitContainer(id, NEVER)).toBe(0);
    const rest = await take(stalled, LINES - first.value.split('\n\n').length + 1);
    expect(numbers(rest).at(-1)).toBe(LINES);
    expect(numbers(rest).length).toBe(LINES - first.value.split('\n\n').length + 1);
  });
});

it('separates stdout from stderr, and sends an unfinished last line', async () => {
  const id = await startContainer(
    'for i in 1 2 3; do echo out $i; echo err $i >&2; done; printf unfinished',
  );
  await engine.waitContainer(id, NEVER);
  const logs = serviceFor(id);
  const textOf = async (query: object) =>
    (await take(await logs.open(POD_ID, { tail: 100, follow: false, ...query })))
      .map((frame) => ('log' in frame ? frame.log : '?'))
      .join('');
  expect(await textOf({ stream: 'stderr' })).toBe('err 1\nerr 2\nerr 3\n');
  expect(await textOf({ stream: 'stdout' })).toBe('out 1\nout 2\nout 3\nunfinished');
  expect(await textOf({ stream: 'stderr', tail: 2 })).toBe('err 2\nerr 3\n');
  expect((await textOf({})).length).toBe(6 * 6 + 'unfinished'.length);
});

it('sends the same frames through the engine where the file is not accessible', async () => {
  const long = `awk 'BEGIN { for (i = 0; i < 9000; i++) printf "0123456789"; print "" }'`;
  const id = await startContainer(`echo one; echo '"two"' >&2; ${long}; printf three`);
  await engine.waitContainer(id, NEVER);
  const remote: LogEngine = {
    ...engine,
    inspectContainer: async (name) => {
      const state = await engine.inspectContainer(name);
      return state === null ? null : { ...state, logPath: '/nowhere/x-json.log' };
    },
  };
  for (const query of [{ since: '0' }, { since: '0', stream: 'stderr' as const }]) {
    const all = { tail: 0, follow: false, ...query };
    const near = await take(await serviceFor(id).open(POD_ID, all));
    expect(await take(await serviceFor(id, remote).open(POD_ID, all))).toEqual(near);
    expect(near.length).toBe('stream' in query ? 1 : 5);
  }
});
