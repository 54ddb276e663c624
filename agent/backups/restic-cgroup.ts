/**
 * A cgroup for restic with less CPU and disk weight than pods, and a memory limit. `nice` alone has an effect only
 * within one group, and pods have separate groups. Other groups are not changed.
 */
import { mkdir, readFile, rmdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Log } from '#shared/runtime/log.ts';

const ROOT = '/sys/fs/cgroup';
const OWN_GROUPS = '/proc/self/cgroup';
/** Memory limit for all concurrent operations, page cache included; the kernel reclaims the cache first. */
const MEMORY_CAP_BYTES = 2 * 1024 * 1024 * 1024;

/** Files of a controller and their values; files that the kernel does not have are skipped. */
type Settings = Record<string, string>;

/**
 * Settings for version 1, where each controller has its own hierarchy. CPU shares are relative to 1024, disk weights
 * range from 10 to 1000.
 */
const VERSION_1: Record<string, Settings> = {
  memory: { 'memory.limit_in_bytes': String(MEMORY_CAP_BYTES) },
  cpu: { 'cpu.shares': '200' },
  blkio: { 'blkio.weight': '50', 'blkio.bfq.weight': '50' },
};
/** Settings for version 2. Weights are relative to 100. */
const VERSION_2: Settings = {
  'memory.max': String(MEMORY_CAP_BYTES),
  'cpu.weight': '20',
  'io.weight': 'default 10',
};
const CPU_FILES = ['cpu.shares', 'cpu.weight'];

export type CgroupMembership = {
  /** A process that writes `0` into each file joins the group. */
  procsFiles: readonly string[];
  /** True if pods have priority on every core. */
  yieldsCpu: boolean;
};

/** The group for all concurrent operations; it exists while any operation is in it. */
export type ResticCgroup = { enter(): Promise<CgroupMembership>; leave(): Promise<void> };

export const NO_MEMBERSHIP: CgroupMembership = { procsFiles: [], yieldsCpu: false };

/** `name` of the group. Without cgroups restic runs unconfined, and this is logged once. */
export function createResticCgroup(options: {
  name: string;
  log: Log;
  /** Mount point of cgroups, and the file that names our group. */
  root?: string;
  ownGroups?: string;
}): ResticCgroup {
  const { name, log, root = ROOT, ownGroups = OWN_GROUPS } = options;
  let users = 0;
  let seat: Promise<CgroupMembership & { folders: readonly string[] }> | null = null;
  /** Runs creation and removal one after the other. */
  let removed = Promise.resolve();
  let isReported = false;

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
    if (!yieldsCpu && !isReported)
      log.warn('restic limited to one core: no control group could be created');
    isReported = true;
    return {
      folders,
      yieldsCpu,
      procsFiles: folders.map((folder) => join(folder, 'cgroup.procs')),
    };
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

/**
 * Returns the folders in which to create the group. With version 2, the new group is a sibling of the agent's group: a
 * group that contains processes cannot have child groups with limits.
 */
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

/** Creates the group and returns the settings that the kernel accepted. Removes the group again if it accepted none. */
async function makeGroup(folder: string, settings: Settings): Promise<string[]> {
  const made = await mkdir(folder).then(
    () => true,
    // A killed agent may have left the group.
    (error: unknown) => error instanceof Error && 'code' in error && error.code === 'EEXIST',
  );
  if (!made) return [];
  const taken: string[] = [];
  for (const [file, value] of Object.entries(settings)) {
    const path = join(folder, file);
    // The kernel creates these files with the group: if one is missing, the kernel does not have that setting.
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
