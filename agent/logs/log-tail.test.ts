import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { LogFrame, type PodPhase } from '#shared/api/agent/pod.ts';
import type { LiveFrames } from '#shared/http/keep-alive.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLogWriter, type LogWriter } from '../../test/fakes/agents/log-writer.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { type ContainerState, EngineError } from '../containers/engine/engine.ts';
import { createLogService, type LogService, MAX_FOLLOWERS } from './log.service.ts';
import type { LogEngine } from './log-follow.ts';
import type { FrameText } from './log-frames.ts';

const POD_ID = '3f9f41a6-0002-4000-8000-000000000004';
const FOLLOW = { tail: 100, follow: true };

let folder: string;
let services: LogService[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'podwright-logs-'));
  services = [];
});
afterEach(async () => {
  for (const logs of services) logs.close();
  await eventually('closed files', () => openFiles() === 0);
  rmSync(folder, { recursive: true });
});

/** Number of file descriptors of this process that are open on the test's folder. */
function openFiles(): number {
  const links = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`);
    } catch {
      return '';
    }
  });
  return links.filter((link) => link.startsWith(folder)).length;
}

/** Sets up one running container whose output is in a real file; the engine's log API must not be called. */
function setUp(name = 'aaaaaaaaaaaa1111') {
  const path = join(folder, `${name}-json.log`);
  const writer: LogWriter = createLogWriter(path);
  const state: ContainerState = {
    id: name,
    name,
    labels: {},
    status: 'running',
    exitCode: 0,
    oomKilled: false,
    startError: '',
    startedMs: 1,
    finishedMs: 0,
    imageId: '',
    createdMs: 0,
    pid: 0,
    networks: ['podwright-net'],
    logPath: path,
  };
  const pod: { containerId: string; phase: PodPhase } = { containerId: name, phase: 'running' };
  const engineNow = { isAway: false, inspections: 0 };
  const engine: LogEngine = {
    async inspectContainer() {
      engineNow.inspections += 1;
      if (engineNow.isAway) throw new EngineError('unavailable', 'away');
      return { ...state };
    },
    containerLogs() {
      throw new Error('must read the file');
    },
  };
  const logs = createLogService({ clock: systemClock, engine, podLogSource: async () => pod });
  services.push(logs);
  return { logs, writer, state, pod, engineNow };
}

function framesOf(text: string): LogFrame[] {
  const frames = text.split('\n\n').slice(0, -1);
  return frames.map((frame) => LogFrame.parse(JSON.parse(frame.slice('data: '.length))));
}

/** Reads until `count` frames have arrived; returns lines as text, other frames in angle brackets. */
async function pull(stream: LiveFrames<FrameText>, count: number): Promise<string[]> {
  const seen: string[] = [];
  while (seen.length < count) {
    const { value, done } = await stream.next();
    if (done === true) return [...seen, '<done>'];
    for (const frame of framesOf(value)) {
      seen.push('log' in frame ? frame.log.trimEnd() : 'meta' in frame ? `<${frame.meta}>` : '<>');
    }
  }
  return seen;
}

it('follows the file, and reports a restart after the lines written before it', async () => {
  const { logs, writer, state, pod } = setUp();
  writer.write('one\n');
  const stream = await logs.open(POD_ID, FOLLOW);
  expect(await pull(stream, 1)).toEqual(['one']);
  const waiting = pull(stream, 3);
  writer.write('the end');
  state.status = 'exited';
  await systemClock.sleep(2_500);
  writer.rotate();
  writer.write('again\n');
  Object.assign(state, { status: 'running', startedMs: 2 });
  expect(await waiting).toEqual(['the end', '<restart>', 'again']);
  // A restart between two checks is detected late, but no line is lost or repeated.
  state.startedMs = 3;
  writer.write('quick\n');
  expect((await pull(stream, 2)).toSorted()).toEqual(['<restart>', 'quick']);
  writer.write('end\n');
  pod.phase = 'removed';
  state.status = 'exited';
  expect(await pull(stream, 3)).toEqual(['end', '<end>', '<done>']);
});

it('sends an unfinished line of 16 KiB when its run ends', async () => {
  const { logs, writer, state } = setUp();
  const part = 'x'.repeat(16 * 1024);
  const stream = await logs.open(POD_ID, FOLLOW);
  writer.write(part);
  state.status = 'exited';
  expect(await pull(stream, 1)).toEqual([part]);
});

it('continues while the engine does not answer', async () => {
  const { logs, writer, engineNow } = setUp();
  writer.write('one\n');
  const stream = await logs.open(POD_ID, FOLLOW);
  expect(await pull(stream, 1)).toEqual(['one']);
  engineNow.isAway = true;
  await systemClock.sleep(1_500);
  writer.write('two\n');
  expect(await pull(stream, 1)).toEqual(['two']);
});

it('serves the maximum number of followers from one set of files and one engine request per interval', async () => {
  const { logs, writer, engineNow } = setUp();
  writer.write('one\n');
  expect(openFiles()).toBe(0);
  const streams = await Promise.all(
    Array.from({ length: MAX_FOLLOWERS }, () => logs.open(POD_ID, FOLLOW)),
  );
  const first = await Promise.all(streams.map((stream) => pull(stream, 1)));
  expect(first.every(([line]) => line === 'one')).toBe(true);
  expect(openFiles()).toBe(1);
  const before = engineNow.inspections;
  await systemClock.sleep(2_500);
  writer.write('two\n');
  const second = await Promise.all(streams.map((stream) => pull(stream, 1)));
  expect(second.every(([line]) => line === 'two')).toBe(true);
  expect(engineNow.inspections - before).toBeLessThan(10);
  await Promise.all(streams.map((stream) => stream.return?.()));
  expect(openFiles()).toBe(0);
});

it('sends only the selected stream, with and without follow', async () => {
  const { logs, writer } = setUp();
  for (const number of [1, 2, 3]) {
    writer.write(`out ${number}\n`, 'stdout');
    writer.write(`err ${number}\n`, 'stderr');
  }
  const stream = await logs.open(POD_ID, { tail: 2, follow: true, stream: 'stderr' });
  expect(await pull(stream, 2)).toEqual(['err 2', 'err 3']);
  writer.write('out 4\n', 'stdout');
  writer.write('err 4\n', 'stderr');
  expect(await pull(stream, 1)).toEqual(['err 4']);
  const once = await logs.open(POD_ID, { tail: 1, follow: false, stream: 'stdout' });
  expect(await pull(once, 9)).toEqual(['out 4', '<done>']);
});

it('buffers one batch for a stalled reader, and reports lines that were rotated away in the meantime', async () => {
  const { logs, writer } = setUp();
  writer.write('one\n');
  const stream = await logs.open(POD_ID, FOLLOW);
  expect(await pull(stream, 1)).toEqual(['one']);
  for (let rotation = 0; rotation < 8; rotation += 1) {
    writer.write(`line ${rotation}\n`);
    writer.rotate();
  }
  writer.write('now\n');
  const seen = await pull(stream, 2);
  while (seen.at(-1) !== 'now') seen.push(...(await pull(stream, 1)));
  expect(seen).toContain('<gap>');
  expect(openFiles()).toBeLessThanOrEqual(4);
});
