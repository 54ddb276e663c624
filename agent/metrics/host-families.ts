/** The host's own figures, under names that no node_exporter beside has (agent reference 15, set C). */
import { type Family, single } from '#shared/telemetry/family.ts';
import type { HostSample } from '../host/host-probe.ts';
import { AGENT_PREFIX } from './instruments.ts';

const PREFIX = `${AGENT_PREFIX}host_`;
const BYTES_PER_KIB = 1_024;
const PERCENT = 100;

const FIGURES: readonly (readonly [string, string, (host: HostSample) => number | null])[] = [
  ['cpu_cores', 'Processors of the host.', ({ cpu }) => cpu.cores],
  [
    'cpu_utilization_ratio',
    'Busy share of all processors between the last two samples.',
    ({ cpu }) => (cpu.utilization_percent === null ? null : cpu.utilization_percent / PERCENT),
  ],
  ['load1', 'Mean load of the last minute.', ({ cpu }) => cpu.load_1m],
  ['memory_total_bytes', 'Memory of the host.', ({ memory }) => memory.total_kib * BYTES_PER_KIB],
  [
    'memory_available_bytes',
    'Memory that could be had without swapping.',
    ({ memory }) => memory.available_kib * BYTES_PER_KIB,
  ],
  [
    'disk_total_bytes',
    'Size of the file system that pods fill.',
    ({ disk }) => disk.total_kib * BYTES_PER_KIB,
  ],
  ['disk_free_bytes', 'What is free there.', ({ disk }) => disk.free_kib * BYTES_PER_KIB],
  [
    'network_receive_bytes_per_second',
    'Received through the interfaces of the default routes between the last two samples.',
    ({ network }) => network.rx_bytes_per_second,
  ],
  [
    'network_transmit_bytes_per_second',
    'Sent through them.',
    ({ network }) => network.tx_bytes_per_second,
  ],
];

/** `host` is null where the last sample is too old to be shown. */
export function hostFamilies(host: () => HostSample | null): Family[] {
  return FIGURES.map(([name, help, figureOf]) => ({
    name: PREFIX + name,
    help,
    type: 'gauge',
    labels: [],
    samples() {
      const now = host();
      return now === null ? [] : single(figureOf(now));
    },
  }));
}
