/**
 * A control group for restic, below pods in processor and disk and with a cap on memory: `nice` alone counts only among
 * the processes of one group, and pods have their own. Nobody else's groups are touched.
 */
import { mkdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Log } from '#shared/runtime/log.ts';

const ROOT = '/sys/fs/cgroup';
const OWN_GROUPS = '/proc/self/cgroup';
/** Of all that run at a time, page cache included: it is given back first. */
const MEMORY_CAP_BYTES = 2 * 1024 * 1024 * 1024;

/** Files of one controller; what a kernel does not know of them is left out. */
type Settings = Record<string, string>;

/** Each controller has a hierarchy of its own. Shares are of 1024, weights of 10 to 1000. */
const VERSION_1: Record<string, Settings> = {
  memory: { 'memory.limit_in_bytes': String(MEMORY_CAP_BYTES) },
  cpu: { 'cpu.shares': '200' },
  blkio: { 'blkio.weight': '50', 'blkio.bfq.weight': '50' },
};
/** Weights are of 100. */
const VERSION_2: Settings = {
  'memory.max': String(MEMORY_CAP_BYTES),
  'cpu.weight': '20',
  'io.weight': 'default 10',
};
const CPU_FILES = ['cpu.shares', 'cpu.weight'];

export type Seat = {
  /** A process that writes `0` into each of them is in. */
  doors: readonly string[];
  /** Pods come first on every core. */
  yieldsCpu: boolean;
};

/** One group for all that run at a time; it is there while any does. */
export type ResticCgroup = { enter(): Promise<Seat>; leave(): Promise<void> };

export const NO_SEAT: Seat = { doors: [], yieldsCpu: false };

/** `name`: of the group. Where there can be none, restic runs without, and the log says so once. */
export function createResticCgroup(options: {
  name: string;
  log: Log;
  /** Where control groups are mounted, and the file that names ours. */
  root?: string;
  ownGroups?: string;
}): ResticCgroup {
  const { name, log, root = ROOT, ownGroups = OWN_GROUPS } = options;
  let users = 0;
  let seat: Promise<Seat & { folders: readonly string[] }> | null = null;
  /** Made and removed one after the other. */
  let removed = Promise.resolve();
  let isTold = false;

  async function makeAll() {
    const own = await readFile(ownGroups, 'utf8').catch(() => '');
    const folders: string[] = [];
    let yieldsCpu = false;
    for (const { parent, settings } of await parentsOf(root, own)) {
      const folder = join(parent, name);
      const taken = await makeGroup(folder, settings);
      if (taken.length === 0) continue;
      folders.push(folder);
      yieldsCpu ||= taken.some((file) => CPU_FILES.includes(file));
    }
    if (!yieldsCpu && !isTold) log.warn('restic runs on one core: it cannot have a control group');
    isTold = true;
    return { folders, yieldsCpu, doors: folders.map((folder) => join(folder, 'cgroup.procs')) };
  }

  return {
    enter() {
      users += 1;
      seat ??= removed.then(makeAll);
      return seat;
    },
    async leave() {
      users -= 1;
      if (users > 0 || seat === null) return;
      const left = seat;
      seat = null;
      removed = left.then(({ folders }) => removeAll(folders));
      await removed;
    },
  };
}

/** Of version 2 beside our own group, since one with processes in it cannot have groups with limits below it. */
async function parentsOf(root: string, own: string) {
  const pathOf = (controller: string) =>
    own
      .split('\n')
      .map((line) => line.split(':'))
      .find(([, names = '']) => names.split(',').includes(controller))?.[2] ?? '/';
  if (await isThere(join(root, 'cgroup.controllers'))) {
    return [{ parent: join(root, dirname(pathOf(''))), settings: VERSION_2 }];
  }
  return Object.entries(VERSION_1).map(([controller, settings]) => ({
    parent: join(root, controller, pathOf(controller)),
    settings,
  }));
}

/** Which settings it took; none, and no group, where it could not be made or takes none. */
async function makeGroup(folder: string, settings: Settings): Promise<string[]> {
  const made = await mkdir(folder).then(
    () => true,
    // Of an agent that was killed.
    (error: unknown) => error instanceof Error && 'code' in error && error.code === 'EEXIST',
  );
  if (!made) return [];
  const taken: string[] = [];
  for (const [file, value] of Object.entries(settings)) {
    const path = join(folder, file);
    // The kernel makes these files with the group: where one is missing, it knows no such setting.
    const isTaken =
      (await isThere(path)) &&
      (await writeFile(path, value).then(
        () => true,
        () => false,
      ));
    if (isTaken) taken.push(file);
  }
  if (taken.length === 0) await rmdir(folder).catch(() => undefined);
  return taken;
}

async function removeAll(folders: readonly string[]): Promise<void> {
  for (const folder of folders) await rmdir(folder).catch(() => undefined);
}

function isThere(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
