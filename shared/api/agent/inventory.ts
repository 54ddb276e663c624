/**
 * A host's hardware, drivers and capabilities as the agent measured them (GET /v1/inventory). Unknown figures are
 * null, never 0.
 */

import { z } from 'zod';
import { described } from '#shared/api/described.ts';
import { Amount, Figure, HostTime, MAX_DEVICES, Name, Text } from './bounds.ts';
import { UpdateStatus } from './update-status.ts';

export const GPU_DRIVERS = ['nvidia', 'simulated', 'none'] as const;

export const LEASE_STATES = ['free', 'held', 'dirty'] as const;

export const DISK_QUOTAS = ['kernel', 'loop', 'poll', 'none'] as const;
export type DiskQuota = (typeof DISK_QUOTAS)[number];

export const GpuDevice = z.object(
  described(
    {
      index: Amount,
      uuid: Name,
      name: Name,
      memory_total_mib: Amount,
      memory_used_mib: Amount.nullable(),
      utilization_percent: Figure.nullable(),
      temperature_c: Figure.nullable(),
      power_draw_w: Figure.nullable(),
      power_limit_w: Figure.nullable(),
      power_enforced_limit_w: Figure.nullable().default(null),
      power_default_limit_w: Figure.nullable().default(null),
      power_max_limit_w: Figure.nullable().default(null),
      pci_bus_id: Name.nullable(),
      graphics_clock_mhz: Figure.nullable().default(null),
      memory_clock_mhz: Figure.nullable().default(null),
      pcie_link: Name.nullable().default(null),
      ecc_errors: Amount.nullable().default(null),
      recovery_action: Name.nullable().default(null),
      processes: Amount.nullable().default(null),
      compute_processes: Amount.nullable().default(null),
      graphics_processes: Amount.nullable().default(null),
      outside_processes: Amount.nullish(),
      declared_processes: Amount.nullish(),
      mig: z
        .object(
          described(
            { profile: Name, parent_uuid: Name },
            { profile: 'Profile, such as `3g.40gb`.', parent_uuid: 'UUID of the card.' },
          ),
        )
        .nullable()
        .default(null),
      leased_by: Name.nullable(),
      lease_state: z.enum(LEASE_STATES).default('free'),
      cordoned: z
        .object(
          described(
            { reason: Text, since_ms: HostTime },
            {
              reason: 'Why the card is no longer leased.',
              since_ms: 'Since when, milliseconds since the epoch.',
            },
          ),
        )
        .nullable()
        .default(null),
    },
    {
      index: 'Number of the GPU on its host, from 0.',
      uuid: 'UUID of the GPU.',
      name: 'Full name of the GPU.',
      memory_total_mib: 'Memory in MiB.',
      memory_used_mib: 'Used memory in MiB; null if unknown.',
      utilization_percent: 'Load in percent; null if unknown.',
      temperature_c: 'Temperature in degrees Celsius; null if unknown.',
      power_draw_w: 'Power in watts; null if unknown.',
      power_limit_w: 'Power limit in watts; null if unknown.',
      power_enforced_limit_w:
        'Power limit that the driver enforces now, the lowest of several limits, in watts; null if unknown.',
      power_default_limit_w: 'Power limit of the card as delivered, in watts; null if unknown.',
      power_max_limit_w: 'Highest power limit that can be set, in watts; null if unknown.',
      pci_bus_id: 'Bus id; null if unknown.',
      graphics_clock_mhz: 'Clock of the GPU in MHz, lower while it is idle; null if unknown.',
      memory_clock_mhz:
        'Clock of the memory in MHz, lower while the card is idle; null if unknown.',
      pcie_link:
        'Present link, such as `PCIe 5 x16`; the generation is lower while the card is idle. Null if unknown.',
      ecc_errors: 'Uncorrectable memory errors since the driver was loaded; null without ECC.',
      recovery_action:
        'Action that the card needs according to the driver, such as `GPU Reset`; `None` for a healthy card, null if unknown.',
      processes:
        'Number of processes with a context on the card when last listed; null if unknown.',
      compute_processes: 'Number of those processes that compute; null if unknown.',
      graphics_processes:
        'Number of those processes that draw; a process may do both. Null if unknown.',
      outside_processes:
        'Number of those processes outside the pod that leases the card; absent if no pod leases it or the number is unknown.',
      declared_processes:
        'Number of those outside processes whose programs the provider declared as monitoring; absent if no pod leases it or the number is unknown.',
      mig: 'Profile and card of a MIG device; null for a whole card.',
      leased_by: 'Id of the pod that leases the device; null if it is free.',
      lease_state:
        '`dirty` if its pod was removed but a process of it still runs; the device is not leased until that process ends.',
      cordoned: 'Why and since when the card is no longer leased; null for a healthy card.',
    },
  ),
);
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
export const GpuTopology = z.object(
  described(
    {
      gpus: z
        .array(
          z.object(
            described(
              {
                uuid: Name,
                numa_node: Amount.nullable(),
                cpus: CpuList.nullable(),
                links: z.array(z.string().max(8)).max(MAX_CARDS),
              },
              {
                uuid: 'UUID of the card.',
                numa_node: 'NUMA node of the card; null if unknown.',
                cpus: "Processors near the card in the kernel's format, such as `0-19,40-59`; null if unknown.",
                links:
                  'Link to each card in this order: `X` for itself, `NV18` for NVLink, `PIX`, `PXB`, `PHB`, `NODE`, `SYS`, or empty.',
              },
            ),
          ),
        )
        .max(MAX_CARDS),
    },
    { gpus: 'Cards in the order of their links.' },
  ),
);
export type GpuTopology = z.output<typeof GpuTopology>;

export const GpuInventory = z.object(
  described(
    {
      driver: z.enum(GPU_DRIVERS),
      driver_version: Name.nullable(),
      cuda_version: Name.nullable(),
      devices: z.array(GpuDevice).max(MAX_DEVICES),
      topology: GpuTopology.nullable().default(null),
      error: Text.nullable(),
    },
    {
      driver: 'Driver of the GPUs.',
      driver_version: 'Version of the driver; null if it reports none.',
      cuda_version: 'Highest CUDA version that the driver supports; null if it reports none.',
      devices: 'Leasable devices: whole cards, and the MIG devices of split cards.',
      topology: 'NUMA nodes of the cards and links between them; null if unknown.',
      error: 'Why the GPUs could not be read; null if they could.',
    },
  ),
);

/** An engine object with this agent's label whose pod is unknown. Deleting pod `pod_id` removes it. */
export const Orphan = z.object(
  described(
    {
      kind: z.enum(['container', 'network', 'volume']),
      id: Name,
      name: Text,
      pod_id: Text.nullable(),
      created_ms: HostTime,
    },
    {
      kind: "Kind of the engine's object.",
      id: 'Id of the object.',
      name: 'Name of the object.',
      pod_id: 'Id of the pod that it belonged to; null if unknown.',
      created_ms: 'Time of creation, milliseconds since the epoch.',
    },
  ),
);
export type Orphan = z.output<typeof Orphan>;

/** Independent readings from kernel and driver, with which the validator checks the inventory; null if unavailable. */
export const HostSources = z.object(
  described(
    {
      pci_gpus: Amount.nullable(),
      driver_gpus: z
        .array(
          z.object(
            described(
              { uuid: Name.nullable(), model: Name.nullable() },
              {
                uuid: 'UUID of the card; null if unknown.',
                model: 'Full name of the card; null if unknown.',
              },
            ),
          ),
        )
        .max(MAX_CARDS)
        .nullable(),
      driver_library_sha256: z
        .string()
        .regex(/^[0-9a-f]{64}$/)
        .nullable(),
      cpus_present: Amount.nullable(),
      memory_kib: Amount.nullable(),
      disk_kib: Amount.nullable(),
      disk_writable: z.boolean().nullable(),
      restic: Name.nullish(),
      side_disk_kib: Amount.nullish(),
    },
    {
      pci_gpus: 'Number of NVIDIA display controllers on the PCI bus; null if unavailable.',
      driver_gpus: 'Cards that the driver lists in /proc; null if unavailable.',
      driver_library_sha256: 'SHA-256 of libnvidia-ml.so.1; null if unavailable.',
      cpus_present: 'Number of processors from sysfs, including offline ones; null if unavailable.',
      memory_kib: 'Memory from sysfs in KiB, including hot-plugged memory; null if unavailable.',
      disk_kib: 'Size in KiB of the device of `disk.path`; null if unavailable.',
      disk_writable: 'True if the agent can create a file in that folder; null if unavailable.',
      restic: 'Version of restic; null if it is not installed, absent if not reported.',
      side_disk_kib:
        "Used space in KiB of that disk without the container engine's data; absent if not reported.",
    },
  ),
);
export type HostSources = z.output<typeof HostSources>;

/**
 * Hardware as the firmware reports it. Virtual machines and small vendors often report nothing or
 * placeholders.
 */
export const Hardware = z.object(
  described(
    {
      vendor: Name.nullable(),
      product: Name.nullable(),
      board: Name.nullable(),
      firmware: Name.nullable(),
      virtual: z.boolean().nullable(),
      sockets: Amount.nullable(),
      physical_cores: Amount.nullable(),
      memory_type: Name.nullable(),
      memory_mhz: Amount.nullable(),
    },
    {
      vendor: 'Vendor of the computer; null if unknown.',
      product: 'Model of the computer; null if unknown.',
      board: 'Vendor and model of the mainboard; null if unknown.',
      firmware: 'Vendor and version of the firmware; null if unknown.',
      virtual: 'True for a virtual machine; null if unknown.',
      sockets: 'Number of processor packages; null if unknown.',
      physical_cores: 'Number of cores without hyper-threads; null if unknown.',
      memory_type: 'Type of the memory modules, such as `DDR5`; null if unknown.',
      memory_mhz: 'Clock of the memory modules in MHz; null if unknown.',
    },
  ),
);
export type Hardware = z.output<typeof Hardware>;

export const Inventory = z.object(
  described(
    {
      executor_id: z.uuid(),
      agent_version: Name,
      collected_ms: HostTime,
      simulated: z.boolean(),
      gpu: GpuInventory,
      cpu: z.object(
        described(
          { model: Name, cores: Amount, utilization_percent: Figure.nullable() },
          {
            model: 'Name of the processor.',
            cores: 'Number of processors.',
            utilization_percent: 'Load in percent; null if unknown.',
          },
        ),
      ),
      memory: z.object(
        described(
          { total_kib: Amount, available_kib: Amount },
          {
            total_kib: 'Memory in KiB.',
            available_kib: 'Memory in KiB that processes can still get.',
          },
        ),
      ),
      disk: z.object(
        described(
          { path: Text, total_kib: Amount, free_kib: Amount },
          {
            path: "Folder of the container engine's data.",
            total_kib: 'Size in KiB.',
            free_kib: 'Free space in KiB.',
          },
        ),
      ),
      os: z.object(
        described(
          { name: Name, kernel: Name, hostname: Name, boot_id: Name },
          {
            name: 'Name of the operating system.',
            kernel: 'Version of the kernel.',
            hostname: 'Name of the host.',
            boot_id: 'Id of the present boot.',
          },
        ),
      ),
      docker: z.object(
        described(
          {
            version: Name,
            storage_driver: Name,
            cgroup_version: Name,
            gpu_runtime: z.boolean(),
            sysbox_runtime: z.boolean(),
          },
          {
            version: 'Version of the engine.',
            storage_driver: 'Storage driver of the engine.',
            cgroup_version: 'Version of cgroups.',
            gpu_runtime: 'True if a runtime or CDI that passes GPUs to containers was found.',
            sysbox_runtime: 'True if containers can run inside a pod.',
          },
        ),
      ),
      isolation: z.object(
        described(
          {
            firewall: z.enum(['enforced', 'unavailable']),
            disk_quota: z.enum(DISK_QUOTAS),
            seccomp: z.boolean(),
          },
          {
            firewall:
              '`enforced` if firewall rules separate the pods; `unavailable` if they cannot be set.',
            disk_quota:
              'How `limits.disk_bytes` is enforced; `poll` measures periodically and stops a pod above its limit.',
            seccomp: 'True if system calls are filtered.',
          },
        ),
      ),
      ports: z.object(
        described(
          { first: Amount, last: Amount, free: Amount },
          {
            first: 'First port of the range.',
            last: 'Last port of the range.',
            free: 'Number of free ports.',
          },
        ),
      ),
      hardware: Hardware.nullable().default(null),
      orphans: z.array(Orphan).default([]),
      sources: HostSources.nullable().default(null),
      update: UpdateStatus.nullable().default(null),
    },
    {
      executor_id: 'Id of the node.',
      agent_version: 'Version of the agent.',
      collected_ms: 'Time of the measurement, milliseconds since the epoch.',
      simulated: 'True if the GPUs are simulated: nothing computes on them.',
      gpu: 'GPUs of the host.',
      cpu: 'Processors of the host.',
      memory: 'Memory of the host.',
      disk: 'Disk of the containers.',
      os: 'Operating system of the host.',
      docker: 'Container engine of the host.',
      isolation: 'Isolation of pods, as found by tests on the host.',
      ports: 'External ports for pods.',
      hardware: 'Hardware of the host; null if it is unknown, or in the first minute of the agent.',
      orphans: "Objects of the engine with this agent's label whose pod is unknown.",
      sources:
        'Independent readings with which the validator checks the inventory; null if the agent does not report them.',
      update: "State of the agent's update; null if the agent does not report it.",
    },
  ),
);
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
