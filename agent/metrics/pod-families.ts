/** What pods use, under the names of cAdvisor (agent reference 15, set D), and who has which GPU. */
import type { Family } from '#shared/telemetry/family.ts';
import type { ContainerUsage } from '../containers/engine/engine.ts';
import { AGENT_PREFIX } from './instruments.ts';

/** A pod with a container, as of the last sample. */
export type PodFacts = {
  podId: string;
  containerId: string;
  containerName: string;
  /** By which it was asked for. */
  image: string;
  imageDigest: string | null;
  /** The beginning of its template's name; null where nobody told. */
  template: string | null;
  memoryLimitBytes: number;
  /** Milliseconds since the epoch. */
  runningSinceMs: number;
  seenMs: number;
  /** Null where it was not measured, or too long ago. */
  usage: ContainerUsage | null;
  writtenBytes: number | null;
  oomEvents: number;
};

export type PodFamilyFacts = {
  pods(): readonly PodFacts[];
  leases(): readonly { uuid: string; podId: string }[];
  /** When a backup of each pod last succeeded, milliseconds since the epoch. */
  backups(): ReadonlyMap<string, number>;
  /** What is under way: pulls of images, backups, restores, drills. */
  work(): readonly WorkFacts[];
};

/** `ratio` of 0 to 1. */
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
    'Memory without files that are only cached.',
    'gauge',
    ({ usage }) => usage?.memoryBytes,
  ],
  ['memory_usage_bytes', 'Memory with them.', 'gauge', ({ usage }) => usage?.memoryWithFilesBytes],
  ['memory_rss', 'Memory of no file.', 'gauge', ({ usage }) => usage?.residentBytes],
  ['memory_cache', 'Memory of files, in use or not.', 'gauge', ({ usage }) => usage?.cacheBytes],
  [
    'spec_memory_limit_bytes',
    'What it may have.',
    'gauge',
    ({ memoryLimitBytes }) => memoryLimitBytes,
  ],
  [
    'network_receive_bytes_total',
    'Received through its networks.',
    'counter',
    ({ usage }) => usage?.network?.receivedBytes,
  ],
  [
    'network_transmit_bytes_total',
    'Sent through them.',
    'counter',
    ({ usage }) => usage?.network?.sentBytes,
  ],
  [
    'fs_reads_bytes_total',
    'Read from block devices.',
    'counter',
    ({ usage }) => usage?.blockIo?.readBytes,
  ],
  [
    'fs_writes_bytes_total',
    'Written to block devices.',
    'counter',
    ({ usage }) => usage?.blockIo?.writtenBytes,
  ],
  ['threads', 'Its processes and their threads.', 'gauge', ({ usage }) => usage?.tasks],
  [
    'fs_usage_bytes',
    'Written into the container and its volumes, where that is measured.',
    'gauge',
    ({ writtenBytes }) => writtenBytes,
  ],
  [
    'oom_events_total',
    'Times that the kernel ended a process of it for want of memory, since the agent began.',
    'counter',
    ({ oomEvents }) => oomEvents,
  ],
  [
    'start_time_seconds',
    'Since when it runs.',
    'gauge',
    ({ runningSinceMs }) => runningSinceMs / MS_PER_SECOND,
  ],
  ['last_seen', 'When it was last sampled.', 'gauge', ({ seenMs }) => seenMs / MS_PER_SECOND],
];

/** For a listener of the provider's own: they name pods and images. */
export function podFamilies({ pods, leases, backups, work }: PodFamilyFacts): Family[] {
  const figures = FIGURES.map(
    ([name, help, type, figureOf]): Family => ({
      ...{ name: `container_${name}`, help, type, labels: LABELS },
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
      help: 'Always 1 for each GPU that a pod has.',
      type: 'gauge',
      labels: ['uuid', 'pod_id'],
      samples: () =>
        leases().map(({ uuid, podId }) => ({ labels: { uuid, pod_id: podId }, value: 1 })),
    },
    {
      name: `${AGENT_PREFIX}pod_work_progress_ratio`,
      help: 'How far a pull, backup, restore or drill has come that is under way.',
      type: 'gauge',
      labels: ['pod_id', 'kind'],
      samples: () =>
        work().map(({ podId, kind, ratio }) => ({ labels: { pod_id: podId, kind }, value: ratio })),
    },
    {
      name: `${AGENT_PREFIX}backup_last_success_timestamp_seconds`,
      help: 'When a backup of each pod last succeeded.',
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
