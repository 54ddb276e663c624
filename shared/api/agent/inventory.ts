/**
 * A host's hardware, drivers and capabilities as the agent measured them (GET /v1/inventory). Unknown figures are
 * null, never 0.
 */
import { z } from 'zod';
import { Amount, Figure, HostTime, MAX_DEVICES, Name, Text } from './bounds.ts';
import { UpdateStatus } from './update-status.ts';

export const GPU_DRIVERS = ['nvidia', 'simulated', 'none'] as const;

export const LEASE_STATES = ['free', 'held', 'dirty'] as const;

export const DISK_QUOTAS = ['kernel', 'loop', 'poll', 'none'] as const;
export type DiskQuota = (typeof DISK_QUOTAS)[number];

export const GpuDevice = z.object({
  index: Amount,
  uuid: Name,
  name: Name,
  memory_total_mib: Amount,
  memory_used_mib: Amount.nullable(),
  utilization_percent: Figure.nullable(),
  temperature_c: Figure.nullable(),
  power_draw_w: Figure.nullable(),
  power_limit_w: Figure.nullable(),
  /** The card's default limit. */
  power_default_limit_w: Figure.nullable().default(null),
  pci_bus_id: Name.nullable(),
  /** Current clocks in MHz; lower while the card is idle. */
  graphics_clock_mhz: Figure.nullable().default(null),
  memory_clock_mhz: Figure.nullable().default(null),
  /** The current link, such as `PCIe 5 x16`; the generation is lower while the card is idle. */
  pcie_link: Name.nullable().default(null),
  /** Uncorrectable errors since the driver was loaded; null without ECC. */
  ecc_errors: Amount.nullable().default(null),
  /** Number of processes with a context on the card when last listed. */
  processes: Amount.nullable().default(null),
  /**
   * Number of those processes outside the pod that leases the card; absent if no pod leases it or the number is
   * unknown.
   */
  outside_processes: Amount.nullish(),
  /** Profile (`3g.40gb`) and card of a MIG device. Null for a whole card. */
  mig: z.object({ profile: Name, parent_uuid: Name }).nullable().default(null),
  /** Id of the pod that leases the device. */
  leased_by: Name.nullable(),
  /** `dirty`: its pod was removed but a process of it still runs. It is not leased until that process ends. */
  lease_state: z.enum(LEASE_STATES).default('free'),
  /** Why and since when the card is no longer leased; null for a healthy card. */
  cordoned: z.object({ reason: Text, since_ms: HostTime }).nullable().default(null),
});
export type GpuDevice = z.output<typeof GpuDevice>;

/** Returns true if a pod can lease the device now, according to the host's report. */
export function isRentable(device: Pick<GpuDevice, 'lease_state' | 'cordoned'>): boolean {
  // Inventories stored by older versions lack these fields.
  return (device.cordoned ?? null) === null && device.lease_state !== 'dirty';
}

const MAX_CARDS = 64;
/** A set of processors in the kernel's format: `0-19,40-59`. */
const CpuList = z.string().max(1_000);

/** NUMA nodes of the cards and links between them (`nvidia-smi topo -m`). A MIG device has the values of its card. */
export const GpuTopology = z.object({
  gpus: z
    .array(
      z.object({
        uuid: Name,
        numa_node: Amount.nullable(),
        cpus: CpuList.nullable(),
        /**
         * Link to each card in this order: `X` for itself, `NV18` for NVLink, `PIX`, `PXB`, `PHB`, `NODE`, `SYS`, or
         * empty.
         */
        links: z.array(z.string().max(8)).max(MAX_CARDS),
      }),
    )
    .max(MAX_CARDS),
});
export type GpuTopology = z.output<typeof GpuTopology>;

export const GpuInventory = z.object({
  driver: z.enum(GPU_DRIVERS),
  driver_version: Name.nullable(),
  cuda_version: Name.nullable(),
  /** Leasable devices: whole cards, and the MIG devices of split cards. */
  devices: z.array(GpuDevice).max(MAX_DEVICES),
  /** Null if unknown. */
  topology: GpuTopology.nullable().default(null),
  /** Why the GPUs could not be read; null if they could. */
  error: Text.nullable(),
});

/** An engine object with this agent's label whose pod is unknown. Deleting pod `pod_id` removes it. */
export const Orphan = z.object({
  kind: z.enum(['container', 'network', 'volume']),
  id: Name,
  name: Text,
  pod_id: Text.nullable(),
  created_ms: HostTime,
});
export type Orphan = z.output<typeof Orphan>;

/** Independent readings from kernel and driver, with which the validator checks the inventory; null if unavailable. */
export const HostSources = z.object({
  /** Number of NVIDIA display controllers on the PCI bus. */
  pci_gpus: Amount.nullable(),
  /** Cards that the driver lists in /proc. */
  driver_gpus: z
    .array(z.object({ uuid: Name.nullable(), model: Name.nullable() }))
    .max(MAX_CARDS)
    .nullable(),
  /** SHA-256 of libnvidia-ml.so.1. */
  driver_library_sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .nullable(),
  /** Number from sysfs, including offline processors. */
  cpus_present: Amount.nullable(),
  /** Size from sysfs, including hot-plugged memory. */
  memory_kib: Amount.nullable(),
  /** Size of the device of `disk.path`. */
  disk_kib: Amount.nullable(),
  /** True if the agent can create a file in that folder. */
  disk_writable: z.boolean().nullable(),
  /** Version of restic; null: not installed; absent: not reported. */
  restic: Name.nullish(),
  /** Used space of that disk without the container engine's data; absent: not reported. */
  side_disk_kib: Amount.nullish(),
});
export type HostSources = z.output<typeof HostSources>;

export const Inventory = z.object({
  executor_id: z.uuid(),
  agent_version: Name,
  collected_ms: HostTime,
  /** True when the GPUs are simulated: nothing computes on them. */
  simulated: z.boolean(),
  gpu: GpuInventory,
  cpu: z.object({ model: Name, cores: Amount, utilization_percent: Figure.nullable() }),
  memory: z.object({ total_kib: Amount, available_kib: Amount }),
  disk: z.object({ path: Text, total_kib: Amount, free_kib: Amount }),
  os: z.object({ name: Name, kernel: Name, hostname: Name, boot_id: Name }),
  docker: z.object({
    version: Name,
    storage_driver: Name,
    cgroup_version: Name,
    /** A runtime or CDI that passes GPUs to containers was found. */
    gpu_runtime: z.boolean(),
    sysbox_runtime: z.boolean(),
  }),
  /** Isolation of pods, as found by tests on the host. */
  isolation: z.object({
    firewall: z.enum(['enforced', 'unavailable']),
    /** Enforcement of `limits.disk_bytes`; `poll` measures periodically and stops a pod above its limit. */
    disk_quota: z.enum(DISK_QUOTAS),
    seccomp: z.boolean(),
  }),
  ports: z.object({ first: Amount, last: Amount, free: Amount }),
  orphans: z.array(Orphan).default([]),
  /** Null if the agent does not report them. */
  sources: HostSources.nullable().default(null),
  /** Null if the agent does not report it. */
  update: UpdateStatus.nullable().default(null),
});
export type Inventory = z.output<typeof Inventory>;

export const VersionInfo = z.object({
  version: Name,
  executor_id: z.uuid(),
  started_ms: HostTime,
  simulated: z.boolean(),
});

export const Readiness = z.object({
  ready: z.boolean(),
  components: z.record(z.string(), z.object({ ok: z.boolean(), message: z.string() })),
});

/** The self-test (POST /v1/verify) starts a labelled, short-lived probe container with these resources. */
export const VerifyRequest = z.strictObject({
  gpu_uuids: z.array(z.string()).max(64).default([]),
  /** `--cpus` of the probe; the engine rejects more cores than the host has. */
  cpu_cores: z.number().min(0.1).max(1024).optional(),
});
const MAX_STEPS = 100;

export const VerifyStep = z.object({
  name: Name,
  status: z.enum(['ok', 'failed', 'skipped']),
  ms: Amount,
  message: z.string(),
});
export type VerifyStep = z.output<typeof VerifyStep>;
export const VerifyResult = z.object({
  ok: z.boolean(),
  /** GPU_RUNTIME_NVML_MISMATCH, GPU_RUNTIME_DEVICE_FAULT, CPU_QUOTA_EXCEEDS_HOST, CONTAINER_START_FAILED or null. */
  reason_code: Name.nullable(),
  steps: z.array(VerifyStep).max(MAX_STEPS),
  simulated: z.boolean(),
});
export type VerifyResult = z.output<typeof VerifyResult>;
