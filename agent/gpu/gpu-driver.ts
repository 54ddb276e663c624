/** Port to the GPUs of the host. */
import type { GPU_DRIVERS, GpuDevice, GpuTopology } from '#shared/api/agent/inventory.ts';

/** Stable codes for findings that cordon a card; the message contains the measured value. */
export const FAULT_REASONS = [
  'UncorrectableEcc',
  'SramThresholdExceeded',
  'RowRemapFailure',
  'RowRemapPending',
  'RecoveryActionNeeded',
  'MemoryShared',
  'Xid',
  'Lost',
] as const;
export type FaultReason = (typeof FAULT_REASONS)[number];
export type GpuFault = { reason: FaultReason; message: string };

/** One GPU or MIG device as measured. Lease and health are added by the inventory. */
export type GpuFigures = Omit<
  GpuDevice,
  'leased_by' | 'lease_state' | 'cordoned' | 'outside_processes' | 'declared_processes'
>;

/** Health of all cards of the host. */
export type HealthReading = {
  /** Cards that answered the query; a card that fell off the bus is missing. */
  cards: readonly { uuid: string; pciBusId: string | null; fault: GpuFault | null }[];
  /** MIG devices that exist. */
  migDevices: readonly { uuid: string; fault: GpuFault | null }[];
};

/** A card that answered, whole or split by MIG. */
export type GpuCard = {
  index: number;
  uuid: string;
  name: string;
  pciBusId: string | null;
  /** By nvidia-smi's field names, as printed, without units. Fields without a value are absent. */
  values: ReadonlyMap<string, string>;
};

/** A process with a context on a card. */
export type GpuProcess = {
  uuid: string;
  pid: number;
  memoryMib: number | null;
  /** A process may compute and draw. */
  computes: boolean;
  draws: boolean;
};

/** A MIG device. */
export type MigPart = {
  uuid: string;
  parentUuid: string;
  profile: string;
  gpuInstance: number | null;
  computeInstance: number | null;
  /** Memory of the GPU instance, which its compute instances share. */
  memoryTotalMib: number | null;
  memoryUsedMib: number | null;
  memoryReservedMib: number | null;
  memoryFreeMib: number | null;
};

export type GpuReading = {
  driverVersion: string | null;
  cudaVersion: string | null;
  /** Devices that can be leased: whole cards and MIG devices. */
  devices: readonly GpuFigures[];
  /** All cards, by index. */
  cards: readonly GpuCard[];
  parts: readonly MigPart[];
  /** Processes from the last XML document of nvidia-smi; null if that document is too old. */
  processes: readonly GpuProcess[] | null;
  /** Null if unknown. */
  topology: GpuTopology | null;
  /** Message for the operator if some or all GPUs could not be read; otherwise null. */
  error: string | null;
  /** Age of `devices` in milliseconds: above 0 if this attempt failed and these are the last good values. */
  ageMs: number;
  /** Exit status of this attempt; null if no program ran or it was killed. */
  exitCode: number | null;
};

export type GpuDriver = {
  /** Changes once, from `none` to `nvidia`, if `detect` finds the driver. */
  readonly kind: (typeof GPU_DRIVERS)[number];
  /** Never rejects; takes at most nvidia-smi's deadline. */
  read(): Promise<GpuReading>;
  /** Null if the driver did not answer completely. */
  health(): Promise<HealthReading | null>;
  /** Returns true if no process computes on the device. Rejects if that cannot be determined. */
  isFree(uuid: string): Promise<boolean>;
  /**
   * Sets the load of simulated cards from 0 to 1 by UUID, once per sample. A card that is not listed has no load. Absent
   * for real cards.
   */
  follow?(loads: ReadonlyMap<string, number>): void;
  /** Checks whether the missing driver is loaded now. Never rejects. Absent if the kind is final. */
  detect?(): Promise<void>;
};

/** Returns true if the host has NVIDIA's driver or may get it while the agent runs. */
export function mayBeNvidia({ kind, detect }: Pick<GpuDriver, 'kind' | 'detect'>): boolean {
  return kind === 'nvidia' || detect !== undefined;
}
