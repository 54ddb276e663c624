/** Converts a ContainerSpec to the engine's create request. Every restriction on pods is in this file. Pure. */
import type { ContainerSpec, VolumeMount } from './engine.ts';

/** Docker's default capabilities without NET_RAW, MKNOD and AUDIT_WRITE, which workloads do not need. */
export const CAPABILITIES = [
  'CHOWN',
  'DAC_OVERRIDE',
  'FOWNER',
  'FSETID',
  'KILL',
  'NET_BIND_SERVICE',
  'SETFCAP',
  'SETGID',
  'SETPCAP',
  'SETUID',
  'SYS_CHROOT',
];
const NANO_CPUS_PER_CORE = 1e9;
/** The engine's default size of /dev/shm. */
const DEFAULT_SHM_BYTES = 64 * 1024 ** 2;
const LOG_FILES = { maxBytes: 50_000_000, count: 3 };

/** The body of POST /containers/create. */
export function containerOptions(spec: ContainerSpec): Record<string, unknown> {
  const published = spec.ports.flatMap(({ internal, host }) =>
    ['tcp', 'udp'].map((protocol) => ({ name: `${internal}/${protocol}`, host })),
  );
  const mounts = [
    ...(spec.readOnlyMounts ?? []).map(readOnlyMount),
    ...(spec.volumes ?? []).map(volumeMount),
  ];
  return {
    Image: spec.image,
    Labels: spec.labels,
    Env: Object.entries(spec.environment).map(([name, value]) => `${name}=${value}`),
    ...(spec.entrypoint.length > 0 ? { Entrypoint: spec.entrypoint } : {}),
    ...(spec.command.length > 0 ? { Cmd: spec.command } : {}),
    ExposedPorts: Object.fromEntries(published.map(({ name }) => [name, {}])),
    StopTimeout: spec.stopGraceSeconds,
    HostConfig: {
      // Without an init process, a PID 1 that ignores SIGTERM would delay every stop by the full grace period.
      Init: true,
      CapDrop: ['ALL'],
      CapAdd: CAPABILITIES,
      SecurityOpt: ['no-new-privileges'],
      Memory: spec.limits.memoryBytes,
      // Equal to Memory: no swap.
      MemorySwap: spec.limits.memoryBytes,
      NanoCpus: Math.round(spec.limits.cpuCores * NANO_CPUS_PER_CORE),
      PidsLimit: spec.limits.pids,
      ...(spec.limits.cpus === undefined ? {} : { CpusetCpus: spec.limits.cpus }),
      ...(spec.limits.memoryNodes === undefined ? {} : { CpusetMems: spec.limits.memoryNodes }),
      ShmSize: shmSizeOf(spec.limits),
      ...(spec.limits.diskBytes === undefined
        ? {}
        : { StorageOpt: { size: String(spec.limits.diskBytes) } }),
      LogConfig: { Type: 'json-file', Config: logOptions(spec.logFiles ?? LOG_FILES) },
      // Only the agent restarts pods.
      RestartPolicy: { Name: 'no' },
      ...(spec.readOnlyRoot === undefined ? {} : { ReadonlyRootfs: true }),
      ...(spec.runtime === undefined ? {} : { Runtime: spec.runtime }),
      NetworkMode: spec.network ?? 'none',
      PortBindings: Object.fromEntries(
        published.map(({ name, host }) => [name, [{ HostIp: '', HostPort: String(host) }]]),
      ),
      ...(mounts.length > 0 ? { Mounts: mounts } : {}),
      ...(spec.gpuUuids.length > 0
        ? { DeviceRequests: [{ Driver: '', DeviceIDs: spec.gpuUuids, Capabilities: [['gpu']] }] }
        : {}),
    },
  };
}

/** Size of /dev/shm. Without a size, the engine would allow 64 MiB, however small the container's memory is. */
export function shmSizeOf({
  shmBytes,
  memoryBytes,
}: Pick<ContainerSpec['limits'], 'shmBytes' | 'memoryBytes'>): number {
  return shmBytes > 0 ? shmBytes : Math.min(DEFAULT_SHM_BYTES, Math.ceil(memoryBytes / 2));
}

/**
 * Returns a read-only mount. If the source is missing, the engine rejects the mount; with `Binds` it would create the
 * source.
 */
function readOnlyMount({ source, target }: { source: string; target: string }) {
  return { Type: 'bind', Source: source, Target: target, ReadOnly: true };
}

/**
 * Returns the mount of a named volume. It has no nosuid or nodev, because the engine has no such options. Neither is
 * needed: pods gain no privileges from setuid programs and cannot create or open other devices.
 */
function volumeMount({ name, target, labels, noCopy }: VolumeMount) {
  // The engine recreates a volume that has vanished; the labels identify it.
  const options = { Labels: labels, ...(noCopy === undefined ? {} : { NoCopy: true }) };
  return { Type: 'volume', Source: name, Target: target, VolumeOptions: options };
}

function logOptions({ maxBytes, count }: { maxBytes: number; count: number }) {
  return { 'max-size': String(maxBytes), 'max-file': String(count) };
}
