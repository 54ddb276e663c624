/** A container's figures from the kernel's own files: of its control groups, and of its first process. */
import type { ContainerUsage } from '../../containers/engine/engine.ts';
import {
  type BlockIo,
  blockIoIn,
  cpuNanosIn,
  memoryPartsIn,
  wholeNumber,
} from './cgroup-figures.ts';
import { type CgroupMount, type GroupFolder, parseCgroupMounts, placeOf } from './cgroup-place.ts';
import { trafficIn } from './interface-traffic.ts';
import type { KernelFiles } from './kernel-files.ts';

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
