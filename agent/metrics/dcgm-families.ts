/** GPU metrics under the names of NVIDIA's DCGM exporter, as far as nvidia-smi provides them. */
import type { Family, Sample } from '#shared/telemetry/family.ts';
import type { GpuCard } from '../gpu/gpu-driver.ts';
import type { FieldUnit } from '../gpu/nvidia/fields.ts';
import { type GpuFacts, gpuInstances } from './gpu-families.ts';
import { inBaseUnits } from './gpu-units.ts';

/** Name after `DCGM_FI_DEV_`, field of nvidia-smi, unit. DCGM does not convert MiB, MHz and percent. */
const FIELDS: readonly (readonly [string, string, FieldUnit])[] = [
  ['GPU_TEMP', 'temperature.gpu', 'signed'],
  ['MEMORY_TEMP', 'temperature.memory', 'signed'],
  ['POWER_USAGE', 'power.draw', 'plain'],
  ['SM_CLOCK', 'clocks.current.sm', 'plain'],
  ['MEM_CLOCK', 'clocks.current.memory', 'plain'],
  ['GPU_UTIL', 'utilization.gpu', 'plain'],
  ['MEM_COPY_UTIL', 'utilization.memory', 'plain'],
  ['ENC_UTIL', 'utilization.encoder', 'plain'],
  ['DEC_UTIL', 'utilization.decoder', 'plain'],
  ['FB_USED', 'memory.used', 'plain'],
  ['FB_FREE', 'memory.free', 'plain'],
  ['FB_RESERVED', 'memory.reserved', 'plain'],
  ['CORRECTABLE_REMAPPED_ROWS', 'remapped_rows.correctable', 'plain'],
  ['UNCORRECTABLE_REMAPPED_ROWS', 'remapped_rows.uncorrectable', 'plain'],
  ['ROW_REMAP_FAILURE', 'remapped_rows.failure', 'word'],
];
const PREFIX = 'DCGM_FI_DEV_';
const PER_PART = 'FB_USED';
const LABELS = ['gpu', 'UUID', 'pci_bus_id', 'device', 'modelName', 'Hostname'] as const;
const PART_LABELS = [...LABELS, 'GPU_I_PROFILE', 'GPU_I_ID'] as const;

export function dcgmFamilies({ reading, xids }: GpuFacts, hostname: string): Family[] {
  const cards = () => reading()?.cards ?? [];
  const labelsOf = ({ index, uuid, name, pciBusId }: GpuCard) => ({
    gpu: index,
    UUID: uuid,
    pci_bus_id: pciBusId ?? '',
    device: `nvidia${index}`,
    modelName: name,
    Hostname: hostname,
  });
  /** For MIG only the used memory is known; compute instances of one GPU instance share it. */
  const parts = (): Sample[] =>
    gpuInstances(reading()?.parts ?? []).flatMap(({ part }) => {
      const card = cards().find(({ uuid }) => uuid === part.parentUuid);
      if (card === undefined || part.memoryUsedMib === null) return [];
      // `1c.3g.40gb` is a compute instance of the GPU instance `3g.40gb`.
      const profile = part.profile.replace(/^\d+c\./, '');
      const place = { GPU_I_PROFILE: profile, GPU_I_ID: part.gpuInstance ?? '' };
      return [{ labels: { ...labelsOf(card), ...place }, value: part.memoryUsedMib }];
    });
  const whole = (field: string, unit: FieldUnit): Sample[] =>
    cards().flatMap((card) => {
      const value = inBaseUnits(card.values.get(field), unit);
      return value === null ? [] : [{ labels: labelsOf(card), value }];
    });
  return [
    ...FIELDS.map(
      ([name, field, unit]): Family => ({
        name: PREFIX + name,
        help: `nvidia-smi's ${field}, in the units of DCGM.`,
        type: 'gauge',
        labels: PART_LABELS,
        samples: () => [...whole(field, unit), ...(name === PER_PART ? parts() : [])],
      }),
    ),
    {
      name: `${PREFIX}XID_ERRORS`,
      help: 'Last Xid of each card, if any.',
      type: 'gauge',
      labels: LABELS,
      samples: () =>
        cards().flatMap((card) => {
          const own = xids().filter(({ uuid }) => uuid === card.uuid);
          const last = own.toSorted((a, b) => b.lastMs - a.lastMs)[0];
          return last === undefined ? [] : [{ labels: labelsOf(card), value: last.code }];
        }),
    },
  ];
}
