/** Tests whether values come from files, which appear and vanish, or from the engine. */
import { beforeEach, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { createFakeEngine } from '../../../test/fakes/engine/fake-engine.ts';
import { IDLE_USAGE } from '../../../test/fakes/engine/fake-engine-containers.ts';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { type ContainerSpec, EngineError } from '../../containers/engine/engine.ts';
import { createFileUsage } from './kernel-usage.ts';
import { createPodUsage, RETRY_FILES_MS } from './pod-usage.ts';

const IMAGE = 'registry.example/one:1';
const SPEC: ContainerSpec = {
  name: 'pod',
  image: IMAGE,
  labels: {},
  entrypoint: [],
  command: [],
  environment: {},
  network: null,
  ports: [],
  gpuUuids: [],
  stopGraceSeconds: 0,
  limits: { cpuCores: 1, memoryBytes: 1, shmBytes: 1, pids: 1 },
};
const NET = 'Inter-|\n face |\n  eth0: 70 0 0 0 0 0 0 0 80 0 0 0 0 0 0 0\n';
const MOUNTS = '30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n';

let clock: ReturnType<typeof createManualClock>;
let engine: ReturnType<typeof createFakeEngine>;
let kernel: Map<string, string>;
let calls: string[];
let warnings: string[];
let id: string;
/** Called before the next file is read. */
let beforeRead: (path: string) => void;

beforeEach(async () => {
  clock = createManualClock();
  engine = createFakeEngine(clock);
  engine.addImage(IMAGE, null);
  calls = [];
  engine.hook = async (moment, method) => {
    if (moment === 'before') calls.push(method);
  };
  kernel = new Map([['/proc/self/mountinfo', MOUNTS]]);
  warnings = [];
  beforeRead = () => undefined;
  id = await engine.createContainer(SPEC);
  await engine.startContainer(id);
  engine.usages.set(id, { ...IDLE_USAGE, cpuNanos: 99 });
  calls = [];
});

/** Simulates the container's process and its group with cgroup version 2. */
function show(pid: number, micros: number): void {
  Object.assign(engine.containers.get(id) ?? {}, { pid });
  const group = `/sys/fs/cgroup/docker/${id}`;
  for (const [path, text] of [
    [`/proc/${pid}/cgroup`, `0::/docker/${id}\n`],
    [`/proc/${pid}/net/dev`, NET],
    [`${group}/cpu.stat`, `usage_usec ${micros}\n`],
    [`${group}/memory.current`, '5000\n'],
    [`${group}/memory.stat`, 'anon 1000\nfile 4000\ninactive_file 3000\n'],
    [`${group}/io.stat`, '8:0 rbytes=10 wbytes=20 rios=1 wios=1 dbytes=0 dios=0\n'],
    [`${group}/pids.current`, '6\n'],
  ] as const) {
    kernel.set(path, text);
  }
}

function begin() {
  const sink = { write: (line: string) => void warnings.push(line) };
  const files = createFileUsage({
    read(path) {
      beforeRead(path);
      const text = kernel.get(path);
      if (text === undefined) throw new Error(`ENOENT: ${path}`);
      return text;
    },
  });
  const log = createLog({ name: 'test', level: 'warn' }, sink);
  const usage = createPodUsage({ clock, engine, log, files });
  return async () => (await usage.read([id])).get(id) ?? null;
}

const BY_FILES = {
  cpuNanos: 1_000,
  memoryBytes: 2_000,
  memoryWithFilesBytes: 5_000,
  residentBytes: 1_000,
  cacheBytes: 4_000,
  tasks: 6,
  network: { receivedBytes: 70, sentBytes: 80 },
  blockIo: { readBytes: 10, writtenBytes: 20 },
};

it('queries the engine once for the files, and not again while they exist', async () => {
  show(12, 1);
  const read = begin();
  expect(await read()).toEqual(BY_FILES);
  engine.setAway(true);
  expect([await read(), await read()]).toEqual([BY_FILES, BY_FILES]);
  expect([calls, warnings]).toEqual([['inspectContainer'], []]);
});

it('returns the values of the kernel, and null for missing ones', async () => {
  show(12, 1);
  kernel.delete(`/sys/fs/cgroup/docker/${id}/io.stat`);
  kernel.delete(`/sys/fs/cgroup/docker/${id}/pids.current`);
  expect(await begin()()).toEqual({ ...BY_FILES, blockIo: null, tasks: null });
});

it('returns no partial values of a control group that vanishes while it is read, and reads the control group of the next run', async () => {
  show(12, 1);
  const read = begin();
  await read();
  beforeRead = (path) => {
    if (!path.endsWith('memory.current')) return;
    for (const file of kernel.keys()) if (file !== '/proc/self/mountinfo') kernel.delete(file);
    engine.exit(id, 0);
  };
  expect(await read()).toBeNull();
  beforeRead = () => undefined;
  await engine.startContainer(id);
  show(13, 2);
  expect(await read()).toEqual({ ...BY_FILES, cpuNanos: 2_000 });
  expect(warnings).toEqual([]);
});

it('ignores a process with a reused pid', async () => {
  show(12, 1);
  const read = begin();
  await read();
  kernel.set('/proc/12/cgroup', '0::/user.slice/session-1.scope\n');
  expect((await read())?.cpuNanos).toBe(99);
});

it.each([
  ['the host’s processes are hidden', () => kernel.delete('/proc/12/cgroup'), 'ENOENT'],
  [
    'another process has the pid',
    () => kernel.set('/proc/12/cgroup', '0::/x\n'),
    'not in the container',
  ],
  ['the groups are not mounted', () => kernel.set('/proc/self/mountinfo', '1 2\n'), 'not mounted'],
])(
  'queries the engine if %s, logs that once, and tries the files again later',
  async (_, hide, why) => {
    show(12, 1);
    hide();
    const read = begin();
    expect([(await read())?.cpuNanos, (await read())?.cpuNanos]).toEqual([99, 99]);
    expect(calls).toEqual(['inspectContainer', 'containerUsage', 'containerUsage']);
    expect(warnings).toEqual([expect.stringContaining(why)]);
    kernel.set('/proc/self/mountinfo', MOUNTS);
    show(12, 1);
    await clock.advance(RETRY_FILES_MS);
    expect(await read()).toEqual(BY_FILES);
    expect(warnings).toHaveLength(1);
  },
);

it('drops containers that are no longer requested', async () => {
  show(12, 1);
  const files = createFileUsage({ read: (path) => kernel.get(path) ?? '' });
  const log = createLog({ name: 'test', level: 'silent' });
  const usage = createPodUsage({ clock, engine, log, files });
  await usage.read([id]);
  await usage.read([]);
  await usage.read([id]);
  expect(calls).toEqual(['inspectContainer', 'inspectContainer']);
});

it('limits concurrent requests, and stops once the engine does not answer', async () => {
  const ids: string[] = [];
  for (let count = 0; count < 30; count += 1) {
    ids.push(await engine.createContainer({ ...SPEC, name: `pod-${count}` }));
  }
  let asked = 0;
  engine.hook = async (moment) => {
    if (moment === 'before') asked += 1;
    throw new EngineError('deadline', 'no answer');
  };
  const log = createLog({ name: 'test', level: 'silent' });
  const files = createFileUsage({ read: () => '' });
  const usage = createPodUsage({ clock, engine, log, files });
  expect([...(await usage.read(ids)).values()]).toEqual(ids.map(() => null));
  expect(asked).toBe(8);
});
