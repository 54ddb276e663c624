/** GPU metrics under the names of nvidia_gpu_exporter, which public dashboards use. */
import type { Family, Sample } from '#shared/telemetry/family.ts';
import type { GpuCard, GpuReading } from '../gpu/gpu-driver.ts';
import { METRIC_FIELDS } from '../gpu/nvidia/csv.ts';
import type { CountedXid } from '../gpu/xid.ts';
import { inBaseUnits, type Unit } from './gpu-units.ts';

const PREFIX = 'nvidia_smi_';
const MIB = 2 ** 20;

/** Source of the GPU metrics; a reading that is too old is null. */
export type GpuFacts = {
  reading(): GpuReading | null;
  xids(): readonly CountedXid[];
  /** Number of readings without new values. */
  failures(): number;
  /** Result of the last reading, regardless of the age of its values; null before the first. */
  lastAttempt(): Pick<GpuReading, 'ageMs' | 'error' | 'exitCode'> | null;
};

/** Field of nvidia-smi, name of the metric, unit. */
const FIELDS: readonly (readonly [string, string, Unit])[] = [
  ['index', 'index', 'plain'],
  ['count', 'count', 'plain'],
  ['pstate', 'pstate', 'word'],
  ['utilization.gpu', 'utilization_gpu_ratio', 'percent'],
  ['utilization.memory', 'utilization_memory_ratio', 'percent'],
  ['utilization.encoder', 'utilization_encoder_ratio', 'percent'],
  ['utilization.decoder', 'utilization_decoder_ratio', 'percent'],
  ['memory.total', 'memory_total_bytes', 'mib'],
  ['memory.used', 'memory_used_bytes', 'mib'],
  ['memory.free', 'memory_free_bytes', 'mib'],
  ['memory.reserved', 'memory_reserved_bytes', 'mib'],
  ['temperature.gpu', 'temperature_gpu', 'plain'],
  ['temperature.memory', 'temperature_memory', 'plain'],
  ['fan.speed', 'fan_speed_ratio', 'percent'],
  ['power.draw', 'power_draw_watts', 'plain'],
  ['power.limit', 'power_limit_watts', 'plain'],
  ['power.default_limit', 'power_default_limit_watts', 'plain'],
  ['enforced.power.limit', 'enforced_power_limit_watts', 'plain'],
  ['clocks.current.graphics', 'clocks_current_graphics_clock_hz', 'mhz'],
  ['clocks.current.sm', 'clocks_current_sm_clock_hz', 'mhz'],
  ['clocks.current.memory', 'clocks_current_memory_clock_hz', 'mhz'],
  ['clocks.current.video', 'clocks_current_video_clock_hz', 'mhz'],
  ['clocks.max.graphics', 'clocks_max_graphics_clock_hz', 'mhz'],
  ['clocks.max.sm', 'clocks_max_sm_clock_hz', 'mhz'],
  ['clocks.max.memory', 'clocks_max_memory_clock_hz', 'mhz'],
  ['ecc.errors.uncorrected.aggregate.total', 'ecc_errors_uncorrected_aggregate_total', 'plain'],
  ['ecc.errors.uncorrected.volatile.total', 'ecc_errors_uncorrected_volatile_total', 'plain'],
  ['ecc.errors.corrected.aggregate.total', 'ecc_errors_corrected_aggregate_total', 'plain'],
  ['ecc.errors.corrected.volatile.total', 'ecc_errors_corrected_volatile_total', 'plain'],
  ['remapped_rows.correctable', 'remapped_rows_correctable', 'plain'],
  ['remapped_rows.uncorrectable', 'remapped_rows_uncorrectable', 'plain'],
  ['remapped_rows.pending', 'remapped_rows_pending', 'word'],
  ['remapped_rows.failure', 'remapped_rows_failure', 'word'],
  ['compute_mode', 'compute_mode', 'word'],
  ['fabric.state', 'fabric_state', 'word'],
  ['gpu_recovery_action', 'gpu_recovery_action', 'word'],
  ['mig.mode.current', 'mig_mode_current', 'word'],
  ['pcie.link.gen.current', 'pcie_link_gen_current', 'plain'],
  ['pcie.link.width.current', 'pcie_link_width_current', 'plain'],
  ...METRIC_FIELDS.filter((field) => field.startsWith('clocks_event_reasons.')).flatMap((field) =>
    [field, field.replace('_event_', '_throttle_')].map(
      (each) => [each, each.replaceAll('.', '_'), 'word'] as const,
    ),
  ),
];

const INFO_LABELS = [
  ...['uuid', 'index', 'name', 'driver_version', 'vbios_version', 'compute_cap'],
  ...['cuda_version', 'driver_model_current', 'driver_model_pending', 'pci_bus_id'],
] as const;

/** `GPU-ABC…` -> `abc…`, as the exporter labels its series. */
export function uuidLabel(uuid: string): string {
  return uuid.replace(/^GPU-/, '').toLowerCase();
}

/** Families for the public listener. */
export function gpuFamilies(facts: GpuFacts): Family[] {
  const cards = () => facts.reading()?.cards ?? [];
  const fields = FIELDS.map(([field, metric, unit]): Family => {
    const name = `${PREFIX}${metric}`;
    return {
      name,
      help: `nvidia-smi's ${field}, in base units.`,
      // Only counters may have names with this suffix.
      type: name.endsWith('_total') ? 'counter' : 'gauge',
      labels: ['uuid'],
      samples: () => cards().flatMap((card) => fieldSample(card, field, unit)),
    };
  });
  return [
    ...fields,
    infoFamily(facts),
    ...migFamilies(facts),
    ...xidFamilies(facts),
    ...meta(facts),
  ];
}

function fieldSample({ uuid, values }: GpuCard, field: string, unit: Unit): Sample[] {
  const value = inBaseUnits(values.get(field), unit);
  return value === null ? [] : [{ labels: { uuid: uuidLabel(uuid) }, value }];
}

/** Dashboards join the other metrics with this one to get the names of cards. */
function infoFamily({ reading }: GpuFacts): Family {
  return {
    name: `${PREFIX}gpu_info`,
    help: 'Always 1; the labels identify card and driver.',
    type: 'gauge',
    labels: INFO_LABELS,
    samples() {
      const now = reading();
      return (now?.cards ?? []).map(({ uuid, index, name, pciBusId, values }) => ({
        labels: {
          uuid: uuidLabel(uuid),
          index,
          name,
          driver_version: now?.driverVersion ?? '',
          vbios_version: values.get('vbios_version') ?? '',
          compute_cap: values.get('compute_cap') ?? '',
          cuda_version: now?.cudaVersion ?? '',
          driver_model_current: values.get('driver_model.current') ?? '',
          driver_model_pending: values.get('driver_model.pending') ?? '',
          pci_bus_id: pciBusId ?? '',
        },
        value: 1,
      }));
    },
  };
}

const MIG_LABELS = [
  ...['uuid', 'mig_uuid', 'gpu_instance_id', 'compute_instance_id', 'profile'],
] as const;

function migFamilies({ reading }: GpuFacts): Family[] {
  const parts = () => reading()?.parts ?? [];
  return [
    {
      name: `${PREFIX}mig_info`,
      help: 'Always 1 for each MIG device; the labels identify its instances.',
      type: 'gauge',
      labels: MIG_LABELS,
      samples: () =>
        parts().map((part) => ({
          labels: {
            uuid: uuidLabel(part.parentUuid),
            mig_uuid: part.uuid,
            gpu_instance_id: part.gpuInstance ?? '',
            compute_instance_id: part.computeInstance ?? '',
            profile: part.profile,
          },
          value: 1,
        })),
    },
    {
      name: `${PREFIX}mig_memory_used_bytes`,
      help: 'Used memory of each MIG device.',
      type: 'gauge',
      // Dashboards join it with mig_info by instance id.
      labels: ['uuid', 'mig_uuid', 'gpu_instance_id'],
      samples: () =>
        parts().flatMap(({ parentUuid, uuid, gpuInstance, memoryUsedMib: used }) => {
          if (used === null) return [];
          const place = { mig_uuid: uuid, gpu_instance_id: gpuInstance ?? '' };
          return [{ labels: { uuid: uuidLabel(parentUuid), ...place }, value: used * MIB }];
        }),
    },
  ];
}

function xidFamilies({ xids }: GpuFacts): Family[] {
  const labelsOf = ({ uuid, code }: CountedXid) => ({ uuid: uuidLabel(uuid), xid: code });
  return [
    {
      name: `${PREFIX}xid_errors_total`,
      help: "Xids in the kernel log since the agent's first start, among the last thousand of all cards.",
      type: 'counter',
      labels: ['uuid', 'xid'],
      samples: () => xids().map((xid) => ({ labels: labelsOf(xid), value: xid.count })),
    },
    {
      name: `${PREFIX}xid_last_timestamp_seconds`,
      help: 'Time of the last occurrence of each Xid on each card.',
      type: 'gauge',
      labels: ['uuid', 'xid'],
      samples: () => xids().map((xid) => ({ labels: labelsOf(xid), value: xid.lastMs / 1_000 })),
    },
  ];
}

function meta({ failures, lastAttempt }: GpuFacts): Family[] {
  return [
    {
      name: `${PREFIX}command_exit_code`,
      help: 'Exit status of the last nvidia-smi run that was not killed.',
      type: 'gauge',
      labels: [],
      samples() {
        const exitCode = lastAttempt()?.exitCode ?? null;
        return exitCode === null ? [] : [{ labels: {}, value: exitCode }];
      },
    },
    {
      name: `${PREFIX}failed_scrapes_total`,
      help: 'Readings of the GPUs without new values.',
      type: 'counter',
      labels: [],
      samples: () => [{ labels: {}, value: failures() }],
    },
    {
      name: `${PREFIX}last_collect_success`,
      help: '1 if the last reading returned new values of all GPUs.',
      type: 'gauge',
      labels: [],
      samples() {
        const last = lastAttempt();
        if (last === null) return [];
        return [{ labels: {}, value: last.ageMs === 0 && last.error === null ? 1 : 0 }];
      },
    },
  ];
}

/** Families that reveal the processes of renters, for the provider's separate listener. */
export function gpuProcessFamilies({ reading }: Pick<GpuFacts, 'reading'>): Family[] {
  const processes = () => reading()?.processes ?? [];
  const labelsOf = ({ uuid, pid }: { uuid: string; pid: number }) => ({
    uuid: uuidLabel(uuid),
    pid,
  });
  return [
    {
      name: `${PREFIX}compute_app_info`,
      help: 'Always 1 for each compute process on a whole card.',
      type: 'gauge',
      labels: ['uuid', 'pid'],
      samples: () => processes().map((each) => ({ labels: labelsOf(each), value: 1 })),
    },
    {
      name: `${PREFIX}compute_app_used_memory_bytes`,
      help: 'Card memory used by the process.',
      type: 'gauge',
      labels: ['uuid', 'pid'],
      samples: () =>
        processes().flatMap((each) =>
          each.memoryMib === null ? [] : [{ labels: labelsOf(each), value: each.memoryMib * MIB }],
        ),
    },
    {
      name: `${PREFIX}compute_apps_last_collect_success`,
      help: '1 if the processes on the cards are known.',
      type: 'gauge',
      labels: [],
      samples() {
        const now = reading();
        return now === null ? [] : [{ labels: {}, value: now.processes === null ? 0 : 1 }];
      },
    },
  ];
}
