/** Resource use of pods under the names of cAdvisor, and GPU leases. */
import type { Family } from '#shared/telemetry/family.ts';
import type { ContainerUsage } from '../containers/engine/engine.ts';
import { AGENT_PREFIX } from './instruments.ts';

/** A pod with a container, as of the last sample. */
export type PodFacts = {
  podId: string;
  containerId: string;
  containerName: string;
  /** The reference in the pod's spec. */
  image: string;
  imageDigest: string | null;
  /** Truncated name of the template; null if the spec has none. */
  template: string | null;
  memoryLimitBytes: number;
  /** Milliseconds since the epoch. */
  runningSinceMs: number;
  seenMs: number;
  /** Null if not measured recently. */
  usage: ContainerUsage | null;
  writtenBytes: number | null;
  oomEvents: number;
};

export type PodFamilyFacts = {
  pods(): readonly PodFacts[];
  leases(): readonly { uuid: string; podId: string }[];
  /** Time of the last successful backup by pod, milliseconds since the epoch. */
  backups(): ReadonlyMap<string, number>;
  /** Running image pulls, backups, restores and drills. */
  work(): readonly WorkFacts[];
};

/** `ratio`: progress from 0 to 1. */
export type WorkFacts = { podId: string; kind: string; ratio: number };

const NANOSECONDS = 1e9;
const MS_PER_SECOND = 1_000;
const LABELS = ['id', 'name', 'image', 'pod_id'] as const;

type Figure = (pod: PodFacts) => number | null | undefined;
const FIGURES: readonly (readonly [string, string, Family['type'], Figure])[] = [
  [
    'cpu_usage_seconds_total',
    "Processor time since the container's start.",
    'counter',
    ({ usage }) => (usage === null ? null : usage.cpuNanos / NANOSECONDS),
  ],
  [
    'memory_working_set_bytes',
    'Memory without inactive file cache.',
    'gauge',
    ({ usage }) => usage?.memoryBytes,
  ],
  [
    'memory_usage_bytes',
    'Memory including file cache.',
    'gauge',
    ({ usage }) => usage?.memoryWithFilesBytes,
  ],
  ['memory_rss', 'Anonymous memory.', 'gauge', ({ usage }) => usage?.residentBytes],
  ['memory_cache', 'File cache.', 'gauge', ({ usage }) => usage?.cacheBytes],
  ['spec_memory_limit_bytes', 'Memory limit.', 'gauge', ({ memoryLimitBytes }) => memoryLimitBytes],
  [
    'network_receive_bytes_total',
    'Bytes received through its networks.',
    'counter',
    ({ usage }) => usage?.network?.receivedBytes,
  ],
  [
    'network_transmit_bytes_total',
    'Bytes sent through its networks.',
    'counter',
    ({ usage }) => usage?.network?.sentBytes,
  ],
  [
    'fs_reads_bytes_total',
    'Bytes read from block devices.',
    'counter',
    ({ usage }) => usage?.blockIo?.readBytes,
  ],
  [
    'fs_writes_bytes_total',
    'Bytes written to block devices.',
    'counter',
    ({ usage }) => usage?.blockIo?.writtenBytes,
  ],
  ['threads', 'Its processes and their threads.', 'gauge', ({ usage }) => usage?.tasks],
  [
    'fs_usage_bytes',
    'Bytes stored in the container and its volumes, if measured.',
    'gauge',
    ({ writtenBytes }) => writtenBytes,
  ],
  [
    'oom_events_total',
    'Out-of-memory kills since the agent started.',
    'counter',
    ({ oomEvents }) => oomEvents,
  ],
  [
    'start_time_seconds',
    'Start time.',
    'gauge',
    ({ runningSinceMs }) => runningSinceMs / MS_PER_SECOND,
  ],
  ['last_seen', 'Time of the last sample.', 'gauge', ({ seenMs }) => seenMs / MS_PER_SECOND],
];

/** Families that name pods and images, for the provider's separate listener. */
export function podFamilies({ pods, leases, backups, work }: PodFamilyFacts): Family[] {
  const figures = FIGURES.map(
    ([name, help, type, figureOf]): Family => ({
      name: `container_${name}`,
      help,
      type,
      labels: LABELS,
      samples: () =>
        pods().flatMap((pod) => {
          const value = figureOf(pod);
          return value === null || value === undefined ? [] : [{ labels: labelsOf(pod), value }];
        }),
    }),
  );
  return [
    ...figures,
    {
      name: `${AGENT_PREFIX}pod_info`,
      help: 'Always 1 for each running pod.',
      type: 'gauge',
      labels: ['pod_id', 'template', 'image_digest'],
      samples: () =>
        pods().map(({ podId, template, imageDigest }) => ({
          labels: { pod_id: podId, template: template ?? '', image_digest: imageDigest ?? '' },
          value: 1,
        })),
    },
    {
      name: `${AGENT_PREFIX}gpu_lease`,
      help: 'Always 1 for each GPU that a pod holds.',
      type: 'gauge',
      labels: ['uuid', 'pod_id'],
      samples: () =>
        leases().map(({ uuid, podId }) => ({ labels: { uuid, pod_id: podId }, value: 1 })),
    },
    {
      name: `${AGENT_PREFIX}pod_work_progress_ratio`,
      help: 'Progress of running pulls, backups, restores and drills.',
      type: 'gauge',
      labels: ['pod_id', 'kind'],
      samples: () =>
        work().map(({ podId, kind, ratio }) => ({ labels: { pod_id: podId, kind }, value: ratio })),
    },
    {
      name: `${AGENT_PREFIX}backup_last_success_timestamp_seconds`,
      help: 'Time of the last successful backup of each pod.',
      type: 'gauge',
      labels: ['pod_id'],
      samples: () =>
        [...backups()].map(([podId, atMs]) => ({
          labels: { pod_id: podId },
          value: atMs / MS_PER_SECOND,
        })),
    },
  ];
}

function labelsOf({ containerId, containerName, image, podId }: PodFacts) {
  return { id: `/docker/${containerId}`, name: containerName, image, pod_id: podId };
}
