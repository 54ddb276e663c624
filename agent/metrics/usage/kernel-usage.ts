/** Resource use of a container, read from the kernel's files of its control groups and its first process. */

import { closeSync, openSync, readSync } from 'node:fs';
import type { ContainerUsage } from '../../containers/engine/engine.ts';
import {
  type BlockIo,
  blockIoIn,
  type CgroupMount,
  cgroupFolders,
  cpuNanosIn,
  type GroupFolder,
  memoryPartsIn,
  parseCgroupMounts,
  wholeNumber,
} from './cgroup.ts';

/** Maximum size of a file, far above the usual one; a pod can only lengthen its list of interfaces. */
const MAX_FILE_BYTES = 64 * 1024;
/** Maximum size of the mount table, which has several lines per container. */
const MAX_MOUNTS_BYTES = 4 * 1024 * 1024;

/** The throttle counters exist always, those of the I/O schedulers only while in use. */
const BLOCK_IO_V1 = [
  'blkio.throttle.io_service_bytes_recursive',
  'blkio.throttle.io_service_bytes',
] as const;

/** Paths of a container's files. */
export type UsageFiles = {
  containerId: string;
  pid: number;
  cpu: string;
  cpuVersion: 1 | 2;
  memory: string;
  memoryStat: string;
  memoryVersion: 1 | 2;
  io: { path: string; version: 1 | 2 } | null;
  pids: string | null;
};

export type FileUsage = ReturnType<typeof createFileUsage>;

export function createFileUsage(files: KernelFiles) {
  let mounts: readonly CgroupMount[] = [];
  const read = (path: string) => files.read(path, MAX_FILE_BYTES);

  function has(path: string): boolean {
    try {
      read(path);
      return true;
    } catch {
      return false;
    }
  }

  function ioFileIn(group: GroupFolder | null): UsageFiles['io'] {
    if (group === null) return null;
    const { version, folder } = group;
    const names = version === 1 ? BLOCK_IO_V1 : ['io.stat'];
    const path = names.map((name) => `${folder}/${name}`).find(has);
    return path === undefined ? null : { path, version };
  }

  return {
    /**
     * Finds the files of the container whose first process is `pid`. Throws with the reason if they are not
     * accessible, for example if the agent runs in a container without the host's processes or control groups.
     */
    locate(containerId: string, pid: number): UsageFiles {
      const cgroups = read(`/proc/${pid}/cgroup`);
      if (!cgroups.includes(containerId)) {
        throw new Error(`process ${pid} is not in the container, or its control groups are hidden`);
      }
      if (mounts.length === 0) {
        mounts = parseCgroupMounts(files.read('/proc/self/mountinfo', MAX_MOUNTS_BYTES));
      }
      const place = cgroupFolders(cgroups, mounts);
      if (place === null) throw new Error('its control groups are not mounted');
      const { cpu, memory, pids } = place;
      const pidsFile = pids === null ? null : `${pids.folder}/pids.current`;
      return {
        containerId,
        pid,
        cpu: `${cpu.folder}/${cpu.version === 1 ? 'cpuacct.usage' : 'cpu.stat'}`,
        cpuVersion: cpu.version,
        memory: `${memory.folder}/${memory.version === 1 ? 'memory.usage_in_bytes' : 'memory.current'}`,
        memoryStat: `${memory.folder}/memory.stat`,
        memoryVersion: memory.version,
        io: ioFileIn(place.io),
        pids: pidsFile !== null && has(pidsFile) ? pidsFile : null,
      };
    },

    /** Reads all values. Throws if the container has ended, instead of returning partial values. */
    read(place: UsageFiles): ContainerUsage {
      const { containerId, pid, io } = place;
      // The pid may have been reused by a process outside the pod.
      if (!read(`/proc/${pid}/cgroup`).includes(containerId))
        throw new Error('the container has ended');
      const network = trafficIn(read(`/proc/${pid}/net/dev`));
      const cpuNanos = cpuNanosIn(read(place.cpu), place.cpuVersion);
      const withFiles = wholeNumber(read(place.memory));
      if (cpuNanos === null || withFiles === null)
        throw new Error('its control groups have no values');
      const parts = memoryPartsIn(read(place.memoryStat), place.memoryVersion);
      const blockIo: BlockIo | null = io === null ? null : blockIoIn(read(io.path), io.version);
      return {
        cpuNanos,
        network,
        blockIo,
        memoryBytes: Math.max(0, withFiles - parts.inactiveFileBytes),
        memoryWithFilesBytes: withFiles,
        residentBytes: parts.residentBytes,
        cacheBytes: parts.cacheBytes,
        tasks: place.pids === null ? null : wholeNumber(read(place.pids)),
      };
    },
  };
}

/** Parses the traffic of a network namespace from its `/proc/PID/net/dev`. Pure. */

/** Traffic of a network namespace; null if it has no interface of the engine. */
export type Traffic = { receivedBytes: number; sentBytes: number } | null;

/** The engine's interfaces in a container; a bridge inside the pod would count traffic twice. */
const ENGINE_INTERFACE = /^eth\d+$/;
/** Index of the bytes sent among the columns after the name. */
const SENT_COLUMN = 8;

export function trafficIn(text: string): Traffic {
  const interfaces = text.split('\n').flatMap((line) => {
    const colon = line.indexOf(':');
    if (colon === -1 || !ENGINE_INTERFACE.test(line.slice(0, colon).trim())) return [];
    // Old kernels print no blank after the colon.
    const columns = line
      .slice(colon + 1)
      .trim()
      .split(/\s+/)
      .map(Number);
    const [received = Number.NaN, sent = Number.NaN] = [columns[0], columns[SENT_COLUMN]];
    return Number.isFinite(received + sent) ? [{ received, sent }] : [];
  });
  if (interfaces.length === 0) return null;
  return {
    receivedBytes: interfaces.reduce((total, { received }) => total + received, 0),
    sentBytes: interfaces.reduce((total, { sent }) => total + sent, 0),
  };
}

const CHUNK_BYTES = 64 * 1024;

export type KernelFiles = {
  /** Reads the whole file. Throws if it cannot be read or has more than `maxBytes`. */
  read(path: string, maxBytes: number): string;
};

/**
 * Reads files that the kernel generates (/proc, cgroups). Synchronous: the kernel answers from memory, and the thread
 * pool would cost several times as much.
 */
export function createKernelFiles(): KernelFiles {
  const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
  return {
    read(path, maxBytes) {
      const file = openSync(path, 'r');
      try {
        let text = '';
        for (;;) {
          const count = readSync(file, chunk);
          if (count === 0) return text;
          // The values are ASCII, so chunks cannot cut a character.
          text += chunk.toString('latin1', 0, count);
          if (text.length > maxBytes) throw new Error(`${path} has more than ${maxBytes} bytes`);
        }
      } finally {
        closeSync(file);
      }
    },
  };
}
