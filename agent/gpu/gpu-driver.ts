/** Where the agent's knowledge of GPUs comes from: the port. */
import type { GPU_DRIVERS, GpuDevice, GpuTopology } from '#shared/api/agent/inventory.ts';
import type { GpuFault } from './nvidia/card-health.ts';

/** One GPU or MIG device as measured; who holds it and whether it may be had is the leases' business. */
export type GpuFigures = Omit<
  GpuDevice,
  'leased_by' | 'lease_state' | 'cordoned' | 'outside_processes'
>;

/** What all cards of the host say of their health. */
export type HealthReading = {
  /** Those that answered; one that fell off the bus does not. */
  cards: readonly { uuid: string; pciBusId: string | null; fault: GpuFault | null }[];
  /** The devices of split cards that there are. */
  migUuids: readonly string[];
};

/** A card that answered, whole or split by MIG, with all that was read of it: by nvidia-smi's names of fields. */
export type GpuCard = {
  index: number;
  uuid: string;
  name: string;
  pciBusId: string | null;
  /** As printed, without units; what the driver has no value for is absent. */
  values: ReadonlyMap<string, string>;
};

/** A process that computes on a whole card, as the driver names it. */
export type GpuProcess = { uuid: string; pid: number; memoryMib: number | null };

/** A part of a card that is split by MIG. */
export type MigPart = {
  uuid: string;
  parentUuid: string;
  profile: string;
  gpuInstance: number | null;
  computeInstance: number | null;
  memoryUsedMib: number | null;
};

export type GpuReading = {
  driverVersion: string | null;
  cudaVersion: string | null;
  /** What can be leased. */
  devices: readonly GpuFigures[];
  /** What is there; in their order of index. */
  cards: readonly GpuCard[];
  parts: readonly MigPart[];
  /** As of the last document; null without a recent one. */
  processes: readonly GpuProcess[] | null;
  /** Null where it is not known. */
  topology: GpuTopology | null;
  /** Why some or all GPUs could not be read, in words; null when they could. */
  error: string | null;
  /** Age of `devices`: above 0 when the present attempt failed and these are the last good figures. */
  ageMs: number;
  /** Of the present attempt; null where no program ended by itself. */
  exitCode: number | null;
};

export type GpuDriver = {
  kind: (typeof GPU_DRIVERS)[number];
  /** Never rejects; nvidia-smi that hangs costs at most its own deadline. */
  read(): Promise<GpuReading>;
  /** Null when the driver did not answer in full: then nothing is known, and nothing has changed. */
  health(): Promise<HealthReading | null>;
  /** Whether no process computes on it. Rejects when that cannot be seen. */
  isFree(uuid: string): Promise<boolean>;
};
