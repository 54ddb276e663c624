/** Spec of the pod that a rental probe launches: the same as for a renter of the whole host, except the image. Pure. */
import { type Inventory, isRentable } from '#shared/api/agent/inventory.ts';
import type { PodSpecInput } from '#shared/api/agent/pod.ts';
import { matchesGpuType } from '#shared/api/gpu-type.ts';
import { LEAST_POD_BYTES } from '#shared/check/limits.ts';

/** The agent removes the pod after this time, even if the validator stopped. */
export const LIFETIME_S = 600;
/** Share of memory that a rental gets; the host needs the rest. */
const MEMORY_SHARE = 0.9;
/** Share of the free disk space that renters are offered. */
const DISK_SHARE = 0.9;
const SHM_BYTES = 64 * 1024 ** 2;
const PIDS = 256;
const KIB = 1_024;
const SSH_PORT = 22;

/** Resources that must be visible inside the pod. */
export type Expected = {
  cpuCores: number;
  memoryBytes: number;
  /** Number of GPU devices; null for simulated or no GPUs. */
  cards: number | null;
  /** Full name of all GPUs; null for simulated, different or no GPUs. */
  gpuType: string | null;
  /** Size of the file system of the pod; null if it is not compared. */
  diskBytes: number | null;
};

export function probeSpec(
  inventory: Inventory,
  { image, publicKey }: { image: string; publicKey: string },
): { spec: PodSpecInput; expected: Expected } {
  const devices = inventory.gpu.devices.filter(isRentable);
  const cpuCores = inventory.cpu.cores;
  const memoryBytes = Math.floor(inventory.memory.total_kib * KIB * MEMORY_SHARE);
  // MIG devices of one card share its device file.
  const cards = new Set(devices.map(({ uuid, mig }) => mig?.parent_uuid ?? uuid)).size;
  const [name = null, ...others] = new Set(devices.map((device) => device.name));
  const isWhole = devices.every(({ mig }) => (mig ?? null) === null);
  const isReal = inventory.gpu.driver === 'nvidia' && cards > 0;
  return {
    spec: {
      generation: 1,
      image: { reference: image },
      internal_ports: [SSH_PORT],
      gpu_uuids: devices.map(({ uuid }) => uuid),
      limits: {
        cpu_cores: cpuCores,
        memory_bytes: memoryBytes,
        shm_bytes: shmBytesOf(memoryBytes),
        pids: PIDS,
      },
      stop_grace_seconds: 0,
      ssh_public_keys: [publicKey],
      remove_after_seconds: LIFETIME_S,
    },
    expected: {
      cpuCores,
      memoryBytes,
      cards: isReal ? cards : null,
      gpuType: isReal && isWhole && others.length === 0 ? name : null,
      // The free space that the host reports is what renters are offered.
      diskBytes: Math.floor(inventory.disk.free_kib * KIB * DISK_SHARE),
    },
  };
}

/** Agents accept at most half of the memory. */
function shmBytesOf(memoryBytes: number): number {
  return Math.min(SHM_BYTES, Math.floor(memoryBytes / 2));
}

/** Limits of a pod that every usable host can run. */
const LEAST = {
  cpuCores: 1,
  memoryBytes: LEAST_POD_BYTES,
  diskBytes: 1024 ** 3,
  pids: 64,
} as const;

/** Smallest rentable part of the host: one card, one core. */
export function leastSpec(
  inventory: Inventory,
  options: { image: string; publicKey: string },
): { spec: PodSpecInput; expected: Expected } {
  const { spec, expected } = probeSpec(inventory, options);
  const cpuCores = Math.min(LEAST.cpuCores, expected.cpuCores);
  const memoryBytes = Math.min(LEAST.memoryBytes, expected.memoryBytes);
  const limits = {
    cpu_cores: cpuCores,
    memory_bytes: memoryBytes,
    disk_bytes: LEAST.diskBytes,
    shm_bytes: shmBytesOf(memoryBytes),
    pids: LEAST.pids,
  };
  const gpu_uuids = (spec.gpu_uuids ?? []).slice(0, 1);
  return {
    spec: { ...spec, gpu_uuids, limits },
    expected: {
      ...expected,
      cpuCores,
      memoryBytes,
      cards: expected.cards === null ? null : 1,
      diskBytes: LEAST.diskBytes,
    },
  };
}

/**
 * Shell script that prints the container's resources as `name=value` lines; the value is empty if unknown. Reads
 * cgroups v2, then v1.
 */
export const INSPECT_SCRIPT: string = [
  'g=/sys/fs/cgroup',
  `echo "disk=$(df -Pk / 2>/dev/null | awk 'NR==2{print $2}')"`,
  'echo "cards=$(ls -d /dev/nvidia[0-9]* 2>/dev/null | wc -l)"',
  'echo "seen=$(grep MemTotal: /proc/meminfo)"',
  'echo "memory=$(cat $g/memory.max 2>/dev/null || cat $g/memory/memory.limit_in_bytes 2>/dev/null)"',
  'echo "cpu=$(cat $g/cpu.max 2>/dev/null || echo $(cat $g/cpu/cpu.cfs_quota_us $g/cpu/cpu.cfs_period_us 2>/dev/null))"',
  // Last, because nvidia-smi may create missing device files.
  'n=$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null) && echo "names=$(echo "$n" | tr "\\n" ";")"',
  'true',
].join('; ');

/** Total memory that the container sees, in KiB; null if unknown. */
export function memorySeen(output: string): number | null {
  const digits = /^seen=MemTotal: +(\d+) kB$/m.exec(output)?.[1];
  return digits === undefined ? null : Number(digits);
}

/** Tolerance, because the kernel rounds memory to pages and cores to fractions. */
const LEAST_SHARE = 0.99;

/** Describes a resource below its expected value; null if there is none. Ignores values that could not be read. */
export function shortfallIn(expected: Expected, output: string): string | null {
  const value = (name: string) => new RegExp(`^${name}=(.*)$`, 'm').exec(output)?.[1]?.trim() ?? '';
  const { cards, memoryBytes, cpuCores, gpuType, diskBytes } = expected;
  const seen = Number(value('cards'));
  if (cards !== null && seen < cards) return `${seen} of ${cards} cards`;
  const memory = Number(value('memory') || Number.NaN);
  if (memory < memoryBytes * LEAST_SHARE) return `${memory} of ${memoryBytes} bytes of memory`;
  const [quota = '', period = ''] = value('cpu').split(/\s+/);
  const cores = Number(quota || Number.NaN) / Number(period || Number.NaN);
  if (cores > 0 && cores < cpuCores * LEAST_SHARE) return `${cores} of ${cpuCores} cores`;
  const names = value('names')
    .split(';')
    .filter((name) => name !== '');
  const wrong = gpuType === null ? undefined : names.find((name) => !matchesGpuType(name, gpuType));
  if (wrong !== undefined) return `a ${wrong} instead of a ${gpuType}`;
  const disk = Number(value('disk') || Number.NaN) * KIB;
  if (diskBytes !== null && disk < diskBytes * LEAST_SHARE)
    return `${disk} of ${diskBytes} bytes of disk`;
  return null;
}
