/** A container's figures from the kernel's own files: of its control groups, and of its first process. */

import { closeSync, openSync, readSync } from 'node:fs';
import type { ContainerUsage } from '../../containers/engine/engine.ts';
import {
  type BlockIo,
  blockIoIn,
  type CgroupMount,
  cpuNanosIn,
  type GroupFolder,
  memoryPartsIn,
  parseCgroupMounts,
  placeOf,
  wholeNumber,
} from './cgroup.ts';

/** Far more than any of them has; what a pod could make longer is its list of interfaces. */
const MAX_FILE_BYTES = 64 * 1024;
/** Every container has several lines there. */
const MAX_MOUNTS_BYTES = 4 * 1024 * 1024;

/** The schedulers' counters are kept where they are in use; those of limits always. */
const BLOCK_IO_V1 = [
  'blkio.throttle.io_service_bytes_recursive',
  'blkio.throttle.io_service_bytes',
] as const;

export type FilePlace = {
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

/** Reads nothing until it is asked. */
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

  function ioFileIn(group: GroupFolder | null): FilePlace['io'] {
    if (group === null) return null;
    const { version, folder } = group;
    const names = version === 1 ? BLOCK_IO_V1 : ['io.stat'];
    const path = names.map((name) => `${folder}/${name}`).find(has);
    return path === undefined ? null : { path, version };
  }

  return {
    /**
     * Where the files of the container with that first process are. Throws, with the reason, where they cannot be seen
     * from here: in a container without the host's processes or control groups.
     */
    locate(containerId: string, pid: number): FilePlace {
      const cgroups = read(`/proc/${pid}/cgroup`);
      if (!cgroups.includes(containerId)) {
        throw new Error(`process ${pid} is another one here, or its control groups are hidden`);
      }
      if (mounts.length === 0) {
        mounts = parseCgroupMounts(files.read('/proc/self/mountinfo', MAX_MOUNTS_BYTES));
      }
      const place = placeOf(cgroups, mounts);
      if (place === null) throw new Error('its control groups are not mounted here');
      const { cpu, memory, pids } = place;
      const pidsFile = pids === null ? null : `${pids.folder}/pids.current`;
      return {
        ...{ containerId, pid },
        cpu: `${cpu.folder}/${cpu.version === 1 ? 'cpuacct.usage' : 'cpu.stat'}`,
        cpuVersion: cpu.version,
        memory: `${memory.folder}/${memory.version === 1 ? 'memory.usage_in_bytes' : 'memory.current'}`,
        memoryStat: `${memory.folder}/memory.stat`,
        memoryVersion: memory.version,
        io: ioFileIn(place.io),
        pids: pidsFile !== null && has(pidsFile) ? pidsFile : null,
      };
    },

    /** All of one moment, or a throw: of a container that ended meanwhile half the figures would be of nothing. */
    read(place: FilePlace): ContainerUsage {
      const { containerId, pid, io } = place;
      // A pid may have passed to somebody else, whose traffic is not the pod's.
      if (!read(`/proc/${pid}/cgroup`).includes(containerId)) throw new Error('it has ended');
      const network = trafficIn(read(`/proc/${pid}/net/dev`));
      const cpuNanos = cpuNanosIn(read(place.cpu), place.cpuVersion);
      const withFiles = wholeNumber(read(place.memory));
      if (cpuNanos === null || withFiles === null)
        throw new Error('its control groups tell nothing');
      const parts = memoryPartsIn(read(place.memoryStat), place.memoryVersion);
      const blockIo: BlockIo | null = io === null ? null : blockIoIn(read(io.path), io.version);
      return {
        ...{ cpuNanos, network, blockIo },
        memoryBytes: Math.max(0, withFiles - parts.inactiveFileBytes),
        memoryWithFilesBytes: withFiles,
        residentBytes: parts.residentBytes,
        cacheBytes: parts.cacheBytes,
        tasks: place.pids === null ? null : wholeNumber(read(place.pids)),
      };
    },
  };
}

/** What went through a network namespace's interfaces, of its `/proc/PID/net/dev`. Pure. */

/** Bytes received and sent; null where the namespace has no interface of ours. */
export type Traffic = { receivedBytes: number; sentBytes: number } | null;

/** As the engine calls its ends in a container: a bridge of the pod's own would count everything twice. */
const ENGINE_INTERFACE = /^eth\d+$/;
/** Columns after the name: bytes received first, bytes sent ninth. */
const SENT_COLUMN = 8;

export function trafficIn(text: string): Traffic {
  const interfaces = text.split('\n').flatMap((line) => {
    const colon = line.indexOf(':');
    if (colon === -1 || !ENGINE_INTERFACE.test(line.slice(0, colon).trim())) return [];
    // Old kernels write no blank after the colon.
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

// MERGED agent/metrics/usage/kernel-usage.ts: Files that the kernel makes while they are read: of /proc and of control groups.
const CHUNK_BYTES = 64 * 1024;

export type KernelFiles = {
  /** The whole text. Throws the system's error, or that there are more than `maxBytes`. */
  read(path: string, maxBytes: number): string;
};

/**
 * This host's. At once and not through the thread pool: the kernel answers from memory, and a turn of the pool costs
 * several times what such a file does.
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
          // What is looked for is ASCII, and no character is cut at the end of a chunk.
          text += chunk.toString('latin1', 0, count);
          if (text.length > maxBytes) throw new Error(`${path} has more than ${maxBytes} bytes`);
        }
      } finally {
        closeSync(file);
      }
    },
  };
}
