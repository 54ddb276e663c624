/** Collects the values of metrics, separately from the reconcile loop, which a hanging driver must not block. */
import type { PullProgress } from '#shared/api/agent/images.ts';
import { SAMPLE_INTERVAL_MS } from '#shared/api/agent/metrics.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Family } from '#shared/telemetry/family.ts';
import type { OperationRow, OperationStore } from '../backups/operation.store.ts';
import type { GpuMetrics } from '../config.ts';
import type { CountedXid } from '../gpu/xid.ts';
import type { LeaseStore } from '../leases/lease.store.ts';
import type { PodRow } from '../pods/pod.store.ts';
import type { PodRecords } from '../pods/pod-records.ts';
import { containerName, specOf } from '../pods/pod-row.ts';
import {
  type AgentState,
  type GpuLeaseState,
  hostFamilies,
  stateFamilies,
} from './agent-families.ts';
import { dcgmFamilies } from './dcgm-families.ts';
import { type GpuFacts, gpuFamilies, gpuPrivateFamilies } from './gpu-families.ts';
import type { Metrics } from './metrics.ts';
import { type PodFacts, podFamilies, type WorkFacts } from './pod-families.ts';
import type { Samples } from './samples.ts';

/** Maximum age of exported values: stale values would hide faults. */
const SHOWN_MS = 3 * SAMPLE_INTERVAL_MS;
const MAX_OPERATIONS = 500;
const PERCENT = 100;

/** Label value for images built on this node; their Dockerfile is the renter's text. */
const BUILT_HERE = 'built here';

export type MetricsJobPorts = {
  clock: Clock;
  metrics: Pick<Metrics, 'add' | 'addOfPods' | 'collected'>;
  gpuMetrics: GpuMetrics;
  hostname: string;
  records: Pick<PodRecords, 'list'>;
  leases: LeaseStore;
  operations: Pick<OperationStore, 'unfinished' | 'finished'>;
  samples: Samples;
  xids(): CountedXid[];
  cordonedUuids(): string[];
  writtenBytes(podId: string): number | null;
  /** Progress of the running image pull of a pod; null if there is none. */
  pullOf(podId: string): PullProgress | null;
  /** The parts of the agent's state that are in memory. */
  currentState(): Omit<
    AgentState,
    'phases' | 'gpuLeases' | 'cordonedUuids' | 'unfinishedOperations'
  >;
};

/** One collection, read by scrapes. */
type Collected = {
  state: AgentState;
  pods: readonly PodFacts[];
  work: readonly WorkFacts[];
  xids: readonly CountedXid[];
};

/** Registers the metrics of GPUs, host and pods; `runOnce` updates them. */
export function createMetricsJob(ports: MetricsJobPorts) {
  const { clock, metrics, samples } = ports;
  let collected: Collected | null = null;
  const ooms = new Map<string, number>();
  let backups: Map<string, number> | null = null;

  function collect(): Collected {
    const rows = ports.records.list();
    const live = new Set(rows.flatMap(({ id, phase }) => (phase === 'removed' ? [] : [id])));
    for (const id of ooms.keys()) if (!live.has(id)) ooms.delete(id);
    for (const id of backups?.keys() ?? []) if (!live.has(id)) backups?.delete(id);
    const cards = samples.gpus()?.reading.devices ?? [];
    const unfinished = ports.operations.unfinished(MAX_OPERATIONS);
    return {
      state: {
        ...ports.currentState(),
        phases: rows.map(({ phase }) => phase),
        gpuLeases: leaseStates(cards, ports.leases),
        cordonedUuids: ports.cordonedUuids(),
        unfinishedOperations: unfinished.length,
      },
      pods: rows.flatMap((row) => factsOf(row) ?? []),
      work: [
        ...rows.flatMap(({ id }) => pullFacts(id, ports.pullOf(id))),
        ...unfinished.map(workFacts),
      ],
      xids: ports.xids(),
    };
  }

  function factsOf(row: PodRow): PodFacts | null {
    if (row.phase !== 'running' || row.container_id === null) return null;
    const { image, limits, template } = specOf(row);
    const sample = samples.podUsage(row.id);
    const isFresh = sample !== null && sample.ageMs <= SHOWN_MS;
    return {
      podId: row.id,
      containerId: row.container_id,
      containerName: containerName(row.id, row.generation),
      image: 'reference' in image ? image.reference : BUILT_HERE,
      imageDigest: row.image_digest,
      template: template ?? null,
      memoryLimitBytes: limits.memory_bytes,
      runningSinceMs: row.phase_since_ms,
      seenMs: clock.now(),
      usage: isFresh ? sample.usage : null,
      writtenBytes: ports.writtenBytes(row.id),
      oomEvents: ooms.get(row.id) ?? 0,
    };
  }

  /**
   * Reads the last backups. They are loaded once, because there are many rows; later backups are recorded when they
   * end.
   */
  function lastBackups(): Map<string, number> {
    if (backups !== null) return backups;
    backups = new Map();
    for (const row of ports.operations.finished(MAX_OPERATIONS)) noteBackup(backups, row);
    return backups;
  }

  const gpuFacts: GpuFacts = {
    reading() {
      const last = samples.gpus();
      return last === null || last.ageMs > SHOWN_MS ? null : last.reading;
    },
    xids: () => collected?.xids ?? [],
    failures: samples.gpuFailures,
    lastAttempt: () => samples.gpus()?.reading ?? null,
  };
  metrics.add(openFamilies(ports, gpuFacts, () => collected?.state ?? null));
  metrics.addOfPods([
    ...(inNvidiaNames(ports.gpuMetrics) ? gpuPrivateFamilies(gpuFacts) : []),
    ...podFamilies({
      pods: () => collected?.pods ?? [],
      leases: () =>
        (collected?.state.gpuLeases ?? []).flatMap(({ uuid, podId }) =>
          podId === null ? [] : [{ uuid, podId }],
        ),
      backups: lastBackups,
      work: () => collected?.work ?? [],
    }),
  ]);

  return {
    /** Samples everything once. Rejects only if the agent's store cannot be read. */
    async runOnce(): Promise<void> {
      await samples.runOnce();
      lastBackups();
      collected = collect();
      metrics.collected('pods');
    },
    /** Records an out-of-memory kill in a pod. */
    noteOom: (podId: string) => void ooms.set(podId, (ooms.get(podId) ?? 0) + 1),
    /** Records a finished backup, restore or drill. */
    noteOperation: (row: OperationRow) => noteBackup(lastBackups(), row),
  };
}

function openFamilies(
  { samples, gpuMetrics, hostname }: MetricsJobPorts,
  gpuFacts: GpuFacts,
  state: () => AgentState | null,
): Family[] {
  const host = () => {
    const last = samples.hostFigures();
    return last === null || last.ageMs > SHOWN_MS ? null : last.figures;
  };
  return [
    ...(inNvidiaNames(gpuMetrics) ? gpuFamilies(gpuFacts) : []),
    ...(gpuMetrics === 'dcgm' || gpuMetrics === 'both' ? dcgmFamilies(gpuFacts, hostname) : []),
    ...hostFamilies(host),
    ...stateFamilies(state),
  ];
}

function inNvidiaNames(gpuMetrics: GpuMetrics): boolean {
  return gpuMetrics === 'nvidia' || gpuMetrics === 'both';
}

/** Progress in bytes, or in layers while sizes are unknown. */
function pullFacts(podId: string, pull: PullProgress | null): WorkFacts[] {
  if (pull === null) return [];
  const [done, total] =
    pull.bytes_total > 0
      ? [pull.bytes_done, pull.bytes_total]
      : [pull.layers_done, pull.layers_total];
  return [{ podId, kind: 'pull', ratio: total > 0 ? Math.min(1, done / total) : 0 }];
}

function workFacts({ pod_id: podId, kind, progress }: OperationRow): WorkFacts {
  return { podId, kind, ratio: progress.percent / PERCENT };
}

function noteBackup(
  backups: Map<string, number>,
  { kind, stage, pod_id: podId, finished_ms: atMs }: OperationRow,
): void {
  if (kind !== 'backup' || stage !== 'done' || atMs === null) return;
  backups.set(podId, Math.max(atMs, backups.get(podId) ?? 0));
}

function leaseStates(devices: readonly { uuid: string }[], leases: LeaseStore): GpuLeaseState[] {
  const known = new Map(leases.list('gpu').map((lease) => [lease.key, lease]));
  // Includes leases of cards that fell off the bus.
  const uuids = new Set([...devices.map(({ uuid }) => uuid), ...known.keys()]);
  return [...uuids].map((uuid) => {
    const lease = known.get(uuid);
    if (lease?.state === 'held') return { uuid, state: 'held', podId: lease.pod_id };
    return { uuid, state: lease?.state === 'dirty' ? 'dirty' : 'free', podId: null };
  });
}
