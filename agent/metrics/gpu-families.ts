/** GPU metrics under the names of nvidia_gpu_exporter, which public dashboards use. */
import type { Family, Sample } from '#shared/telemetry/family.ts';
import type { GpuCard, GpuProcess, GpuReading, MigPart } from '../gpu/gpu-driver.ts';
import { FIELD_UNITS, type FieldUnit } from '../gpu/nvidia/fields.ts';
import type { CountedXid } from '../gpu/xid.ts';
import { inBaseUnits } from './gpu-units.ts';

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

/** Suffixes of metric names by unit. */
const SUFFIXES: Readonly<Record<FieldUnit, string>> = {
  plain: '',
  signed: '',
  word: '',
  mib: '_bytes',
  percent: '_ratio',
  mhz: '_clock_hz',
  watts: '_watts',
  watts_per_s: '_watts_per_second',
  us: '_seconds',
  ms: '_seconds',
  s: '_seconds',
};

/** `clocks.current.sm` in MHz -> `nvidia_smi_clocks_current_sm_clock_hz`, as the exporter names its series. */
export function metricOf(field: string, unit: FieldUnit): string {
  const words = field.replaceAll('.', '_').replace(/(?<=[a-z])(?=[A-Z])/g, '_');
  return `${PREFIX}${words.toLowerCase()}${SUFFIXES[unit]}`;
}

/** Field that identifies the board to its manufacturer. Only the provider's separate listener serves it. */
const PRIVATE_FIELD = 'serial';

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
  const fields = FIELD_UNITS.filter(([field]) => field !== PRIVATE_FIELD);
  return [
    ...fields.flatMap(([field, unit]) => fieldFamilies(field, unit, facts)),
    infoFamily(facts),
    ...migFamilies(facts),
    ...xidFamilies(facts),
    ...meta(facts),
  ];
}

/** Drivers before 535 report the reasons under the older name; both names are exported for both. */
function fieldFamilies(field: string, unit: FieldUnit, { reading }: GpuFacts): Family[] {
  const isReason = /^clocks_(?:event|throttle)_reasons\./.test(field);
  if (field.startsWith('clocks_throttle_reasons.')) return [];
  const older = field.replace('_event_', '_throttle_');
  return (isReason ? [field, older] : [field]).map((exported): Family => {
    const name = metricOf(exported, unit);
    return {
      name,
      help: `nvidia-smi's ${exported}, in base units.`,
      // Only counters may have names with this suffix.
      type: name.endsWith('_total') ? 'counter' : 'gauge',
      labels: ['uuid'],
      samples: () =>
        (reading()?.cards ?? []).flatMap((card) =>
          fieldSample(card, card.values.has(field) ? field : older, unit),
        ),
    };
  });
}

function fieldSample({ uuid, values }: GpuCard, field: string, unit: FieldUnit): Sample[] {
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
    ...MIG_MEMORY.map(
      ([kind, mib]): Family => ({
        name: `${PREFIX}mig_memory_${kind}_bytes`,
        help: `Memory (${kind}) of each GPU instance. \`mig_uuid\` is empty if MIG devices share the instance.`,
        type: 'gauge',
        // Dashboards join it with mig_info by instance id.
        labels: ['uuid', 'mig_uuid', 'gpu_instance_id'],
        samples: () =>
          gpuInstances(parts()).flatMap(({ part, isShared }) => {
            const value = mib(part);
            if (value === null) return [];
            const place = {
              mig_uuid: isShared ? '' : part.uuid,
              gpu_instance_id: part.gpuInstance ?? '',
            };
            return [{ labels: { uuid: uuidLabel(part.parentUuid), ...place }, value: value * MIB }];
          }),
      }),
    ),
  ];
}

const MIG_MEMORY: readonly (readonly [string, (part: MigPart) => number | null])[] = [
  ['total', ({ memoryTotalMib }) => memoryTotalMib],
  ['used', ({ memoryUsedMib }) => memoryUsedMib],
  ['free', ({ memoryFreeMib }) => memoryFreeMib],
  ['reserved', ({ memoryReservedMib }) => memoryReservedMib],
];

/** Returns each GPU instance once, with its first MIG device: the compute instances of one instance share its memory. */
export function gpuInstances(
  parts: readonly MigPart[],
): readonly { part: MigPart; isShared: boolean }[] {
  const sharersOf = ({ parentUuid, gpuInstance, uuid }: MigPart) =>
    gpuInstance === null ? uuid : `${parentUuid} ${gpuInstance}`;
  return [...Map.groupBy(parts, sharersOf).values()].flatMap(([part, ...others]) =>
    part === undefined ? [] : [{ part, isShared: others.length > 0 }],
  );
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

/** Kinds of processes by the part of their names; a process may be of both kinds. */
const KINDS: readonly (readonly [string, (process: GpuProcess) => boolean])[] = [
  ['compute', ({ computes }) => computes],
  ['graphics', ({ draws }) => draws],
];

function processCountFamilies({ reading }: GpuFacts): Family[] {
  return KINDS.map(([kind, isOfKind]) => ({
    name: `${PREFIX}${kind}_apps`,
    help: `Number of ${kind} processes on each card.`,
    type: 'gauge',
    labels: ['uuid'],
    samples() {
      const { processes = null, cards = [] } = reading() ?? {};
      if (processes === null) return [];
      return cards.map(({ uuid }) => {
        const own = processes.filter((each) => each.uuid === uuid && isOfKind(each));
        return { labels: { uuid: uuidLabel(uuid) }, value: own.length };
      });
    },
  }));
}

/** Families that reveal the processes of renters or the serial number, for the provider's separate listener. */
export function gpuPrivateFamilies(facts: GpuFacts): Family[] {
  const { reading } = facts;
  return [
    ...fieldFamilies(PRIVATE_FIELD, 'plain', facts),
    ...processCountFamilies(facts),
    ...KINDS.flatMap(([kind, isOfKind]) =>
      processFamilies(kind, () => (reading()?.processes ?? []).filter(isOfKind)),
    ),
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

function processFamilies(kind: string, processes: () => readonly GpuProcess[]): Family[] {
  const labelsOf = ({ uuid, pid }: GpuProcess) => ({ uuid: uuidLabel(uuid), pid });
  return [
    {
      name: `${PREFIX}${kind}_app_info`,
      help: `Always 1 for each ${kind} process on a card.`,
      type: 'gauge',
      labels: ['uuid', 'pid'],
      samples: () => processes().map((each) => ({ labels: labelsOf(each), value: 1 })),
    },
    {
      name: `${PREFIX}${kind}_app_used_memory_bytes`,
      help: `Card memory used by each ${kind} process.`,
      type: 'gauge',
      labels: ['uuid', 'pid'],
      samples: () =>
        processes().flatMap((each) =>
          each.memoryMib === null ? [] : [{ labels: labelsOf(each), value: each.memoryMib * MIB }],
        ),
    },
  ];
}
