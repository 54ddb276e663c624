/** What a host has, as the agent measured it (GET /v1/inventory). Absent figures are null, never 0. */
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
  /** The limit that the card has unless somebody sets another. */
  power_default_limit_w: Figure.nullable().default(null),
  pci_bus_id: Name.nullable(),
  /** Present clocks in MHz; they fall while the card idles. */
  graphics_clock_mhz: Figure.nullable().default(null),
  memory_clock_mhz: Figure.nullable().default(null),
  /** The link as it is now, `PCIe 5 x16`; its generation falls while the card idles. */
  pcie_link: Name.nullable().default(null),
  /** Uncorrectable errors since the driver was loaded; null where the memory has no ECC. */
  ecc_errors: Amount.nullable().default(null),
  /** That had a context on it when they were last listed. */
  processes: Amount.nullable().default(null),
  /** Of them those that are not of the pod that holds it; absent where no pod does, or it cannot be seen. */
  outside_processes: Amount.nullish(),
  /** Of a MIG device: its profile (`3g.40gb`) and the card it is part of. Null for a whole card. */
  mig: z.object({ profile: Name, parent_uuid: Name }).nullable().default(null),
  /** The pod that holds it, if any. */
  leased_by: Name.nullable(),
  /** `dirty`: its pod is gone, a process of it is not. Nobody gets it until that ends. */
  lease_state: z.enum(LEASE_STATES).default('free'),
  /** Why no pod gets it any more, and since when; null for a sound card. */
  cordoned: z.object({ reason: Text, since_ms: HostTime }).nullable().default(null),
});
export type GpuDevice = z.output<typeof GpuDevice>;

/** Whether a pod can get it now, as far as its host knows. */
export function isRentable(device: Pick<GpuDevice, 'lease_state' | 'cordoned'>): boolean {
  // Inventories stored before these fields were known have neither.
  return (device.cordoned ?? null) === null && device.lease_state !== 'dirty';
}

const MAX_CARDS = 64;
/** `0-19,40-59`, as the kernel writes sets of processors. */
const CpuList = z.string().max(1_000);

/** Where the cards lie and what joins them (`nvidia-smi topo -m`); MIG devices lie where their card does. */
export const GpuTopology = z.object({
  gpus: z
    .array(
      z.object({
        uuid: Name,
        numa_node: Amount.nullable(),
        cpus: CpuList.nullable(),
        /** To each card in this order: `X` itself, `NV18` NVLinks, `PIX` `PXB` `PHB` `NODE` `SYS`, or empty. */
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
  /** What can be leased: whole cards, and the devices of those that are split by MIG. */
  devices: z.array(GpuDevice).max(MAX_DEVICES),
  /** Null where it is not known. */
  topology: GpuTopology.nullable().default(null),
  /** Why the GPUs could not be read, in words; null when they could. */
  error: Text.nullable(),
});

/** An object of this agent in the engine that belongs to no pod it knows; DELETE of `pod_id` removes it. */
export const Orphan = z.object({
  kind: z.enum(['container', 'network', 'volume']),
  id: Name,
  name: Text,
  pod_id: Text.nullable(),
  created_ms: HostTime,
});
export type Orphan = z.output<typeof Orphan>;

/** What kernel and driver say of the same things elsewhere, for comparison; null where they do not tell. */
export const HostSources = z.object({
  /** NVIDIA's display controllers on the PCI bus. */
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
  /** In sysfs, those that are switched off too. */
  cpus_present: Amount.nullable(),
  /** In sysfs, plugged in while it ran included. */
  memory_kib: Amount.nullable(),
  /** Of the device that `disk.path` lies on. */
  disk_kib: Amount.nullable(),
  /** Whether the agent's folder takes a file. */
  disk_writable: z.boolean().nullable(),
  /** Version of what backs up; null: there is none, absent: not told. */
  restic: Name.nullish(),
  /** What of that disk is used, less what the container engine has there; absent: not told. */
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
    /** A runtime or CDI that can hand GPUs to containers was found. */
    gpu_runtime: z.boolean(),
    sysbox_runtime: z.boolean(),
  }),
  /** What fences pods in, as far as it was found to work by trying. */
  isolation: z.object({
    firewall: z.enum(['enforced', 'unavailable']),
    /** What holds a pod to `limits.disk_bytes`; `poll` measures now and then, and stops who is above it. */
    disk_quota: z.enum(DISK_QUOTAS),
    seccomp: z.boolean(),
  }),
  ports: z.object({ first: Amount, last: Amount, free: Amount }),
  orphans: z.array(Orphan).default([]),
  /** Null of agents that do not look. */
  sources: HostSources.nullable().default(null),
  /** Null of agents that do not tell. */
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

/** Starts a labelled, short-lived probe container with exactly these demands. */
export const VerifyRequest = z.strictObject({
  gpu_uuids: z.array(z.string()).max(64).default([]),
  /** `--cpus` of the probe; an engine that cannot give as many refuses it. */
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
