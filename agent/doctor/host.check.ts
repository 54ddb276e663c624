/** Checks of the host itself: rights of this process, kernel, memory, disks. */
import { existsSync } from 'node:fs';
import { release, totalmem } from 'node:os';
import { fail, ok, unknown, warn } from '#shared/check/check.ts';
import {
  DISK_REQUIRED,
  type DiskUse,
  judgeDisk,
  nearestFolder,
  readDiskUse,
} from '#shared/check/disk.check.ts';
import type { DoctorCheck } from '#shared/check/doctor.ts';
import { DEFAULT_LIMITS, LEAST_POD_BYTES } from '#shared/check/limits.ts';
import type { Observed } from '#shared/check/observe.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';

export type HostFacts = {
  kernel: string;
  memoryBytes: number;
  /** AGENT_MEMORY_RESERVE_MIB in bytes. */
  reserveBytes: number;
  root: boolean;
};

/** Oldest supported kernel: older kernels lack features that pod limits and current GPU drivers need. */
const OLDEST_KERNEL = [5, 4] as const;
/** Minimum reserve of memory: with less, a busy host kills its own services for lack of memory. */
const LEAST_RESERVE_BYTES = 512 * 2 ** 20;
const BYTES_PER_MIB = 2 ** 20;
const SYSTEMD = '/run/systemd/system';

export function readHostFacts(reserveBytes: number): HostFacts {
  const root = process.getuid?.() === 0;
  return { kernel: release(), memoryBytes: totalmem(), reserveBytes, root };
}

/** Returns true if systemd is the host's service manager. */
export function hasSystemd(): boolean {
  return existsSync(SYSTEMD);
}

export const HOST_CHECKS: readonly DoctorCheck<HostFacts>[] = [
  {
    id: 'rights',
    detects: 'a process that is not root',
    required: 'the agent and its doctor run as root',
    judge({ root }) {
      if (root) return ok('root: every check could run');
      const measured =
        'not root: firewall rules and other users’ processes are hidden, and such an agent cannot measure or back up pods’ volumes';
      return unknown(measured, 'run the doctor as the agent’s user');
    },
  },
  {
    id: 'kernel',
    detects: 'a kernel that is too old',
    required: `Linux ${OLDEST_KERNEL.join('.')} or newer`,
    judge({ kernel }) {
      const [major = 0, minor = 0] = kernel.split('.').map((part) => Number.parseInt(part, 10));
      const [oldest, oldestMinor] = OLDEST_KERNEL;
      const isNew = major > oldest || (major === oldest && minor >= oldestMinor);
      if (isNew) return ok(`Linux ${kernel}`);
      return warn(`Linux ${kernel} is old`, `upgrade to ${OLDEST_KERNEL.join('.')} or newer`);
    },
  },
  {
    id: 'memory',
    detects: 'too little memory for pods or for the host',
    required: `${LEAST_POD_BYTES / BYTES_PER_MIB} MiB for pods and ${LEAST_RESERVE_BYTES / BYTES_PER_MIB} MiB for the host`,
    judge({ memoryBytes, reserveBytes }) {
      const mib = (bytes: number) => `${Math.round(bytes / BYTES_PER_MIB)} MiB`;
      const measured = `${mib(memoryBytes)}, of which ${mib(reserveBytes)} are reserved for the host`;
      if (memoryBytes - reserveBytes < LEAST_POD_BYTES) {
        return fail(`${measured}: too little is left for pods`, 'lower AGENT_MEMORY_RESERVE_MIB');
      }
      if (reserveBytes >= LEAST_RESERVE_BYTES) return ok(measured);
      return warn(`${measured}: pods can starve the host`, 'AGENT_MEMORY_RESERVE_MIB=1024');
    },
  },
];

export type DiskFacts = {
  engine: Observed<DiskUse>;
  home: Observed<DiskUse>;
  /** Free space on Docker's disk that validators require. */
  minFreeGib: number;
};

export async function readDiskFacts(options: {
  clock: Clock;
  runCommand: RunCommand;
  /** Docker's data folder; null if it is unknown. */
  engineRoot: string | null;
  /** AGENT_HOME. */
  home: string;
  minFreeGib: number;
}): Promise<DiskFacts> {
  const { engineRoot, minFreeGib } = options;
  const [engine, home] = await Promise.all([
    engineRoot === null
      ? { problem: 'the engine did not report its folder' }
      : readDiskUse({ ...options, path: engineRoot }),
    readDiskUse({ ...options, path: nearestFolder(options.home) }),
  ]);
  return { engine, home, minFreeGib };
}

export const DISK_CHECKS: readonly DoctorCheck<DiskFacts>[] = [
  {
    id: 'docker-disk',
    detects: 'a full disk below Docker’s folder',
    required: `${DISK_REQUIRED}, and at least the free space that validators require (default policy: ${DEFAULT_LIMITS.min_free_disk_gib} GiB)`,
    judge: ({ engine, minFreeGib }) =>
      judgeDisk(engine, {
        minFreeGib,
        remedy: 'docker system df; remove images that your pods do not need: docker image ls',
      }),
  },
  {
    id: 'home-disk',
    detects: 'a full disk below AGENT_HOME',
    required: DISK_REQUIRED,
    judge: ({ home }) =>
      judgeDisk(home, {
        minFreeGib: 0,
        remedy: 'du -xsh /var/* | sort -h; or move AGENT_HOME to another disk',
      }),
  },
];
