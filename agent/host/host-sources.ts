/** Independent counts of GPUs, processors, memory and disk from kernel and driver, with which a validator compares the inventory. */
import { createHash } from 'node:crypto';
import { mkdir, open, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { MAX_NAME_CHARS } from '#shared/api/agent/bounds.ts';
import type { HostSources } from '#shared/api/agent/inventory.ts';
import { type Clock, withDeadline } from '#shared/runtime/clock.ts';
import { nvidiaCardsOnBus } from '../gpu/pci-bus.ts';
import type { SideDisk } from './disk-space.ts';

/** `diskPath` is a folder on the disk that pods fill. */
export type ReadHostSources = (diskPath: string) => Promise<HostSources>;

/** Time for which results are reused: the values rarely change, and the write test costs a disk flush. */
const FRESH_MS = 60_000;
/** Deadline of each source, so that a hanging disk does not delay the others. */
const DEADLINE_MS = 3_000;
const MAX_CARDS = 64;
const SECTOR_BYTES = 512;
/** Paths of the driver library in common distributions. */
const LIBRARIES = [
  'usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1',
  'usr/lib/aarch64-linux-gnu/libnvidia-ml.so.1',
  'usr/lib64/libnvidia-ml.so.1',
  'usr/lib/libnvidia-ml.so.1',
];
const MAX_LIBRARY_BYTES = 64 * 1024 * 1024;
const PROBE_BYTES = 4_096;

/** `folder` is a folder of the agent on the disk of its data. Tests set `root`. */
export function createHostSources(options: {
  clock: Clock;
  folder: string;
  root?: string;
  /** Returns the version of restic, or null if it is not installed. */
  restic(): Promise<string | null>;
  sideDisk: SideDisk;
}): ReadHostSources {
  const { clock, folder, root = '/', restic, sideDisk } = options;
  let cached: { atMs: number; sources: Promise<HostSources> } | null = null;
  return (diskPath) => {
    const nowMs = clock.monotonicMs();
    if (cached === null || nowMs - cached.atMs >= FRESH_MS) {
      const sources = readSources({ clock, root, folder, diskPath, restic, sideDisk });
      cached = { atMs: nowMs, sources };
    }
    return cached.sources;
  };
}

type Places = {
  clock: Clock;
  root: string;
  folder: string;
  diskPath: string;
  restic(): Promise<string | null>;
  sideDisk: SideDisk;
};

async function readSources({ root, folder, diskPath, ...sources }: Places): Promise<HostSources> {
  const inTime = <T>(reading: Promise<T>) => withDeadline(sources.clock, DEADLINE_MS, reading);
  const orNull = <T>(reading: Promise<T>) => inTime(reading).catch(() => null);
  const [pci, driver, library, cpus, memory, disk, writable, restic] = await Promise.all([
    orNull(nvidiaCardsOnBus(join(root, 'sys/bus/pci/devices'))),
    orNull(driverGpus(join(root, 'proc/driver/nvidia/gpus'))),
    orNull(libraryDigest(root)),
    orNull(countCpus(join(root, 'sys/devices/system/cpu/present'))),
    orNull(presentMemoryKib(join(root, 'sys/devices/system'))),
    orNull(deviceKib(join(root, 'sys/dev/block'), diskPath)),
    orNull(canWrite(folder)),
    inTime(sources.restic()).catch(() => undefined),
  ]);
  return {
    pci_gpus: pci?.length ?? null,
    driver_gpus: driver,
    driver_library_sha256: library,
    cpus_present: cpus,
    memory_kib: memory,
    disk_kib: disk,
    disk_writable: writable,
    restic,
    side_disk_kib: sources.sideDisk(diskPath),
  };
}

async function driverGpus(folder: string): Promise<HostSources['driver_gpus']> {
  const cards = (await readdir(folder)).slice(0, MAX_CARDS);
  const texts = await Promise.all(
    cards.map((card) => readFile(join(folder, card, 'information'), 'utf8')),
  );
  return texts.map((text) => ({ uuid: lineOf(text, 'GPU UUID'), model: lineOf(text, 'Model') }));
}

function lineOf(text: string, name: string): string | null {
  const value = new RegExp(`^${name}:[ \\t]*(.+)$`, 'm').exec(text)?.[1]?.trim() ?? '';
  return value === '' || value.includes('?') ? null : value.slice(0, MAX_NAME_CHARS);
}

async function libraryDigest(root: string): Promise<string | null> {
  for (const library of LIBRARIES) {
    const path = join(root, library);
    const { size } = await stat(path).catch(() => ({ size: Number.POSITIVE_INFINITY }));
    if (size > MAX_LIBRARY_BYTES) continue;
    const content = await readFile(path).catch(() => null);
    if (content !== null) return createHash('sha256').update(content).digest('hex');
  }
  return null;
}

/** Counts the processors in a kernel list: `0-3,8` -> 5. */
async function countCpus(path: string): Promise<number> {
  const ranges = (await readFile(path, 'utf8')).trim().split(',');
  return ranges.reduce((sum, range) => {
    const [from = '', to = from] = range.split('-');
    return sum + Number.parseInt(to, 10) - Number.parseInt(from, 10) + 1;
  }, 0);
}

/** Rejects if the file system has no block device. */
async function deviceKib(folder: string, diskPath: string): Promise<number> {
  const { dev } = await stat(diskPath);
  // The encoding of makedev.
  const major = ((dev >>> 8) & 0xfff) | ((dev / 2 ** 32) & ~0xfff);
  const minor = (dev & 0xff) | ((dev >>> 12) & 0xfff00);
  const sectors = await readFile(join(folder, `${major}:${minor}`, 'size'), 'utf8');
  return Math.floor((Number.parseInt(sectors, 10) * SECTOR_BYTES) / 1024);
}

async function canWrite(folder: string): Promise<boolean> {
  const path = join(folder, 'probe.data');
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const file = await open(path, 'w', 0o600);
    try {
      await file.write(Buffer.alloc(PROBE_BYTES, 1));
      await file.sync();
    } finally {
      await file.close();
    }
    return true;
  } catch {
    return false;
  } finally {
    await rm(path, { force: true }).catch(() => undefined);
  }
}

/** Limit of memory blocks that are read: 4 TiB in blocks of 128 MiB, the smallest size. */
const MAX_BLOCKS = 32_768;
const BLOCKS_PER_BATCH = 128;
const BYTES_PER_KIB = 1_024;

/**
 * Returns the larger of two sums, because each may be too small. The sum over NUMA nodes omits hot-plugged memory. The
 * sum over memory blocks omits memory that firmware hides. `folder` is /sys/devices/system. Rejects if there are no
 * nodes or the blocks are not readable.
 */
export async function presentMemoryKib(folder: string): Promise<number> {
  const [nodes, blocks] = await Promise.all([
    nodeMemoryKib(join(folder, 'node')),
    onlineBlocksKib(join(folder, 'memory')),
  ]);
  return Math.max(nodes, blocks);
}

async function nodeMemoryKib(folder: string): Promise<number> {
  const nodes = (await readdir(folder)).filter((name) => /^node\d+$/.test(name));
  if (nodes.length === 0) throw new Error('no NUMA nodes');
  const texts = await Promise.all(
    nodes.map((node) => readFile(join(folder, node, 'meminfo'), 'utf8')),
  );
  return texts.reduce((sum, text) => sum + Number(/MemTotal: +(\d+) kB/.exec(text)?.[1]), 0);
}

/** Returns 0 if the kernel has no memory hot-plug; in that case the nodes include all memory. */
async function onlineBlocksKib(folder: string): Promise<number> {
  const blocks = await readdir(folder).then(
    (names) => names.filter((name) => /^memory\d+$/.test(name)),
    () => [],
  );
  if (blocks.length === 0) return 0;
  if (blocks.length > MAX_BLOCKS) throw new Error('too many memory blocks');
  const blockBytes = Number.parseInt(await readFile(join(folder, 'block_size_bytes'), 'utf8'), 16);
  let online = 0;
  for (let from = 0; from < blocks.length; from += BLOCKS_PER_BATCH) {
    const states = await Promise.all(
      blocks
        .slice(from, from + BLOCKS_PER_BATCH)
        .map((block) => readFile(join(folder, block, 'state'), 'utf8')),
    );
    online += states.filter((state) => state.trim() === 'online').length;
  }
  return Math.floor((online * blockBytes) / BYTES_PER_KIB);
}
