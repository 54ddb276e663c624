/** One row of the sample history: a host's or pod's figures in the order of the wire. Pure. */
import {
  MAX_SAMPLED_GPUS,
  type SAMPLED_FIGURES,
  type SAMPLED_GPU_FIGURES,
} from '#shared/api/agent/metric-history.ts';
import type { ContainerUsage } from '../containers/engine/engine.ts';
import type { GpuFigures, GpuReading } from '../gpu/gpu-driver.ts';
import type { HostSample } from '../host/host-probe.ts';
import type { PodSample } from './pod-sample.ts';

type Figures<Name extends string> = Record<Name, number | null>;
type HostFigures = Figures<(typeof SAMPLED_FIGURES)[number]>;
type GpuRow = Figures<(typeof SAMPLED_GPU_FIGURES)[number]>;

export type SampledGpu = GpuRow & { uuid: string };
export type SeriesSample = HostFigures & {
  /** Null for the host. */
  podId: string | null;
  gpus: readonly SampledGpu[];
};

const PERCENT = 100;
const BYTES_PER_KIB = 1_024;
const MS_PER_SECOND = 1_000;

/** Bits of NVML's clocks event reasons. */
const POWER_CAP = 0x4;
const HARDWARE_SLOWDOWN = 0x8;
const SOFTWARE_THERMAL = 0x20;
const HARDWARE_THERMAL = 0x40;
const POWER_BRAKE = 0x80;
const REASON_FIELDS = ['clocks_event_reasons.active', 'clocks_throttle_reasons.active'] as const;

export function sampleRow(sample: SeriesSample): (number | null)[] {
  const {
    cpu_percent,
    ram_percent,
    rx_bytes_per_second: rx,
    tx_bytes_per_second: tx,
    disk_used_kib: used,
    disk_read_bytes_per_second: read,
    disk_write_bytes_per_second: written,
  } = sample;
  return [
    ...[cpu_percent, ram_percent, rx, tx, used, read, written],
    ...sample.gpus.flatMap((gpu) => [
      gpu.gpu_percent,
      gpu.gpu_memory_percent,
      gpu.power_w,
      gpu.temperature_c,
      gpu.thermal_throttle_percent,
      gpu.power_throttle_percent,
    ]),
  ];
}

const UNKNOWN_GPU: GpuRow = {
  gpu_percent: null,
  gpu_memory_percent: null,
  power_w: null,
  temperature_c: null,
  thermal_throttle_percent: null,
  power_throttle_percent: null,
};

const UNKNOWN_HOST: HostFigures = {
  cpu_percent: null,
  ram_percent: null,
  rx_bytes_per_second: null,
  tx_bytes_per_second: null,
  disk_used_kib: null,
  disk_read_bytes_per_second: null,
  disk_write_bytes_per_second: null,
};

/** `uuids` are the GPUs to report. Figures of one that is missing, or whose values are old, are null. */
export function sampledGpus(uuids: readonly string[], reading: GpuReading): SampledGpu[] {
  const isNew = reading.ageMs === 0;
  return uuids.slice(0, MAX_SAMPLED_GPUS).map((uuid) => {
    const device = reading.devices.find((each) => each.uuid === uuid);
    const isMeasured = isNew && device !== undefined;
    return { uuid, ...(isMeasured ? gpuRow(device, reading) : UNKNOWN_GPU) };
  });
}

function gpuRow(device: GpuFigures, { cards }: GpuReading): GpuRow {
  const { memory_used_mib: used, memory_total_mib: total } = device;
  const cardUuid = device.mig?.parent_uuid ?? device.uuid;
  const values = cards.find(({ uuid }) => uuid === cardUuid)?.values;
  const reasons = reasonsIn(REASON_FIELDS.map((field) => values?.get(field)));
  return {
    gpu_percent: device.utilization_percent,
    gpu_memory_percent: used === null || total <= 0 ? null : (used / total) * PERCENT,
    power_w: device.power_draw_w,
    temperature_c: device.temperature_c,
    thermal_throttle_percent: reasons === null ? null : isThermal(reasons) ? PERCENT : 0,
    power_throttle_percent:
      reasons === null ? null : (reasons & (POWER_CAP | POWER_BRAKE)) !== 0 ? PERCENT : 0,
  };
}

/** Parses the first mask that the driver reports, such as `0x0000000000000004`. */
function reasonsIn(masks: readonly (string | undefined)[]): number | null {
  const mask = masks.find((each) => each !== undefined && /^0x[0-9a-f]{1,16}$/i.test(each));
  // All of the bits above are in the lowest 32.
  return mask === undefined ? null : Number.parseInt(mask.slice(2).slice(-8), 16);
}

/**
 * Returns true if clocks are reduced by heat. A hardware slowdown without a power brake is caused by heat or a fault of
 * the card.
 */
function isThermal(reasons: number): boolean {
  if ((reasons & (SOFTWARE_THERMAL | HARDWARE_THERMAL)) !== 0) return true;
  return (reasons & HARDWARE_SLOWDOWN) !== 0 && (reasons & POWER_BRAKE) === 0;
}

/** Row of the host. `figures` is null if the host could not be sampled now. */
export function hostRow(figures: HostSample | null): HostFigures {
  if (figures === null) return UNKNOWN_HOST;
  const { cpu, memory, disk, network, disks } = figures;
  const usedKib = memory.total_kib - memory.available_kib;
  return {
    ...network,
    cpu_percent: cpu.utilization_percent,
    ram_percent: memory.total_kib <= 0 ? null : (usedKib / memory.total_kib) * PERCENT,
    disk_used_kib: disk.total_kib - disk.free_kib,
    disk_read_bytes_per_second: disks.rx_bytes_per_second,
    disk_write_bytes_per_second: disks.tx_bytes_per_second,
  };
}

export type Counters = { atMs: number; containerId: string } & Pick<
  ContainerUsage,
  'network' | 'blockIo'
>;

/** Row of a pod. Rates are unknown without `before`, and after a restart, which resets the counters. */
export function podRow(
  before: Counters | null,
  now: Pick<PodSample, 'atMs' | 'containerId' | 'usage' | 'usedCores'>,
  pod: { limitCores: number; limitBytes: number; writtenBytes: number | null },
): HostFigures {
  const { usage, usedCores } = now;
  const from = before?.containerId === now.containerId ? before : null;
  const seconds = from === null ? 0 : (now.atMs - from.atMs) / MS_PER_SECOND;
  const rate = (was: number | undefined, is: number | undefined): number | null => {
    const isKnown = was !== undefined && is !== undefined && is >= was && seconds > 0;
    return isKnown ? (is - was) / seconds : null;
  };
  return {
    cpu_percent: usedCores === null ? null : (usedCores / pod.limitCores) * PERCENT,
    ram_percent: usage === null ? null : (usage.memoryBytes / pod.limitBytes) * PERCENT,
    rx_bytes_per_second: rate(from?.network?.receivedBytes, usage?.network?.receivedBytes),
    tx_bytes_per_second: rate(from?.network?.sentBytes, usage?.network?.sentBytes),
    disk_used_kib: pod.writtenBytes === null ? null : pod.writtenBytes / BYTES_PER_KIB,
    disk_read_bytes_per_second: rate(from?.blockIo?.readBytes, usage?.blockIo?.readBytes),
    disk_write_bytes_per_second: rate(from?.blockIo?.writtenBytes, usage?.blockIo?.writtenBytes),
  };
}
