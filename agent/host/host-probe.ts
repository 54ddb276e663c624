/** Facts about the host. Defines the port and implements it with /proc and, for its hardware, systeminformation. */
import { readFileSync } from 'node:fs';
import { readFile, statfs } from 'node:fs/promises';
import { cpus, hostname, release } from 'node:os';
import { dirname } from 'node:path';
import { MAX_FIGURE, MAX_NAME_CHARS } from '#shared/api/agent/bounds.ts';
import type { Inventory } from '#shared/api/agent/inventory.ts';
import type { HostMetrics } from '#shared/api/agent/metrics.ts';
import { type Clock, withDeadline } from '#shared/runtime/clock.ts';
import { createHardware, type ReadHardware } from './hardware.ts';
import {
  bytesOfDisks,
  bytesThrough,
  createTraffic,
  type HostTraffic,
  loadOf,
  uplinksOf,
} from './host-load.ts';

export type HostFacts = Pick<Inventory, 'cpu' | 'memory' | 'disk' | 'os' | 'hardware'>;

export type HostProbe = {
  /** `diskPath` is a folder on the disk that pods fill. Rejects if that disk does not answer in time. */
  read(diskPath: string): Promise<HostFacts>;
  /** Facts and rates since the previous sample. Only one caller may use it. */
  sample(diskPath: string): Promise<HostSample>;
};

export type HostSample = Pick<HostMetrics, 'cpu' | 'memory' | 'disk' | 'network'> & {
  /** Bytes per second that the host's disks read (`rx`) and write (`tx`), since the previous sample. */
  disks: HostTraffic;
};

/** Deadline of statfs, which never returns for a disk behind a dead mount. */
const STATFS_DEADLINE_MS = 2_000;

export function createHostProbe(options: { clock: Clock; readHardware: ReadHardware }): HostProbe {
  const { clock } = options;
  // Utilization is measured since the previous call, so each caller has a separate counter.
  const forReading = createCpuUtilization();
  const forSamples = createCpuUtilization();
  const traffic = createTraffic(clock);
  const diskTraffic = createTraffic(clock);
  const freeSpace = createFreeSpace(clock);
  const hardware = createHardware(clock, options.readHardware);
  let osName: string | null = null;
  let bootId: string | null = null;

  async function read(diskPath: string, utilization: typeof forReading): Promise<HostFacts> {
    osName ??= await osNameFromRelease();
    bootId ??= (await readFile(BOOT_ID, 'utf8')).trim();
    const found = hardware();
    const [disk, memory, stat] = await Promise.all([
      freeSpace(diskPath),
      readFile('/proc/meminfo', 'utf8'),
      readFile('/proc/stat', 'utf8'),
    ]);
    return {
      cpu: {
        model: cpuModelOf(cpus()[0]?.model ?? '') || found?.cpuModel || 'unknown',
        cores: cpus().length,
        utilization_percent: utilization(stat),
      },
      memory: {
        total_kib: kibOf(memory, 'MemTotal'),
        available_kib: kibOf(memory, 'MemAvailable'),
      },
      disk: { path: diskPath, ...disk },
      os: {
        name: osName || found?.osName || 'Linux',
        kernel: release(),
        hostname: hostname(),
        boot_id: bootId,
      },
      hardware: found?.hardware ?? null,
    };
  }

  return {
    read: (diskPath) => read(diskPath, forReading),
    async sample(diskPath) {
      const [{ cpu, memory, disk }, ...tables] = await Promise.all([
        read(diskPath, forSamples),
        ...LOAD_TABLES.map((path) => readFile(path, 'utf8').catch(() => '')),
      ]);
      const [loadavg = '', route = '', ipv6Route = '', dev = '', diskstats = ''] = tables;
      const network = traffic(bytesThrough(dev, uplinksOf(route, ipv6Route)));
      const disks = diskTraffic(bytesOfDisks(diskstats));
      return { cpu: { ...cpu, load_1m: loadOf(loadavg) }, memory, disk, network, disks };
    },
  };
}

const LOAD_TABLES = [
  '/proc/loadavg',
  '/proc/net/route',
  '/proc/net/ipv6_route',
  '/proc/net/dev',
  '/proc/diskstats',
] as const;

const BOOT_ID = '/proc/sys/kernel/random/boot_id';

/** Id of the host's present boot; empty if the kernel does not report one. */
export function readBootId(): string {
  try {
    return readFileSync(BOOT_ID, 'utf8').trim();
  } catch {
    return '';
  }
}

/** Returns the kernel's name of the processor; empty on many ARM hosts, where the kernel has none. */
function cpuModelOf(model: string): string {
  const name = model.trim();
  return name === 'unknown' ? '' : name;
}

async function osNameFromRelease(): Promise<string> {
  const text = await readFile('/etc/os-release', 'utf8').catch(() => '');
  return /^PRETTY_NAME="?([^"\n]+)"?$/m.exec(text)?.[1]?.slice(0, MAX_NAME_CHARS) ?? '';
}

/** Reads free space with one statfs per disk at a time, because a hanging statfs blocks a thread of the process. */
export function createFreeSpace(clock: Clock) {
  const running = new Map<string, Promise<{ total_kib: number; free_kib: number }>>();
  return (path: string) => {
    const reading = running.get(path) ?? spaceOf(path).finally(() => running.delete(path));
    running.set(path, reading);
    return withDeadline(clock, STATFS_DEADLINE_MS, reading);
  };
}

/**
 * Returns the space at `path`. If the folder does not exist on this host, uses the disk of its nearest existing parent.
 */
async function spaceOf(path: string): Promise<{ total_kib: number; free_kib: number }> {
  for (let folder = path; ; folder = dirname(folder)) {
    try {
      const { bsize, blocks, bavail } = await statfs(folder);
      const kib = (count: number) => Math.min(MAX_FIGURE, Math.floor((count * bsize) / 1024));
      return { total_kib: kib(blocks), free_kib: kib(bavail) };
    } catch (error) {
      if (folder === dirname(folder)) throw error;
    }
  }
}

/** Percent of CPU time in use since the previous call; null at the first call. */
export function createCpuUtilization() {
  let last: { busy: number; total: number } | null = null;
  return (procStat: string): number | null => {
    const line = /^cpu +(.+)$/m.exec(procStat)?.[1];
    if (line === undefined) return null;
    // user nice system idle iowait irq softirq steal; user includes guest time.
    const ticks = line.split(' ').slice(0, 8).map(Number);
    const total = ticks.reduce((sum, count) => sum + count, 0);
    const now = { busy: total - (ticks[3] ?? 0) - (ticks[4] ?? 0), total };
    const before = last;
    last = now;
    if (before === null || now.total <= before.total) return null;
    const share = (now.busy - before.busy) / (now.total - before.total);
    return Math.round(Math.min(1, Math.max(0, share)) * 1000) / 10;
  };
}

function kibOf(meminfo: string, name: string): number {
  const digits = new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(meminfo)?.[1];
  if (digits === undefined) throw new Error(`/proc/meminfo has no ${name}`);
  return Number(digits);
}
