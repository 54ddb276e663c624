/** Finds objects of this executor in the engine that belong to no pod. They are reported and not removed. */
import type { Orphan } from '#shared/api/agent/inventory.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Log } from '#shared/runtime/log.ts';
import {
  type ContainerEngine,
  type ContainerState,
  LABELS,
  type NetworkState,
  type VolumeState,
} from '../containers/engine/engine.ts';
import { executorLabels } from '../containers/engine/labels.ts';
import type { PodRecords } from './pod-records.ts';

export const ORPHANS_INTERVAL_MS = 5 * 60_000;
/** Minimum age of an orphan. A younger object may belong to a step in progress. */
export const ORPHAN_GRACE_MS = 5 * 60_000;
/** Limit of reported orphans. */
const MAX_ORPHANS = 200;

export type OrphanSweep = ReturnType<typeof createOrphanSweep>;

/** Orphans may be all that remains of the pods of a lost store, so only a signed DELETE of their pod removes them. */
export function createOrphanSweep(deps: {
  executorId: string;
  engine: Pick<
    ContainerEngine,
    'listContainers' | 'listNetworks' | 'removeNetwork' | 'listVolumes' | 'removeVolume'
  >;
  records: PodRecords;
  clock: Clock;
  log: Log;
  /** Called after every sweep with the number of orphans by kind. */
  onSwept(counts: Record<Orphan['kind'], number>): void;
}) {
  const { engine, records, clock, log } = deps;
  const labels = executorLabels(deps.executorId);
  let orphans: Orphan[] = [];

  function isOld({ createdMs }: { createdMs: number }): boolean {
    const ageMs = clock.now() - createdMs;
    // A negative age means that the clock was set back.
    return ageMs < 0 || ageMs >= ORPHAN_GRACE_MS;
  }

  function report(found: readonly Orphan[]): void {
    const before = new Set(orphans.map(({ id }) => id));
    for (const orphan of found) {
      if (!before.has(orphan.id)) log.warn({ orphan }, 'object in the engine belongs to no pod');
    }
    orphans = found.slice(0, MAX_ORPHANS);
    const count = (kind: Orphan['kind']) => found.filter((orphan) => orphan.kind === kind).length;
    deps.onSwept({
      container: count('container'),
      network: count('network'),
      volume: count('volume'),
    });
  }

  /** Removes objects that the engine created after the call's deadline, when the pod had already been removed. */
  async function removeLate(
    networks: readonly NetworkState[],
    volumes: readonly VolumeState[],
    phases: PodPhases,
  ): Promise<void> {
    const isLate = (object: NetworkState | VolumeState) =>
      phases.get(podIdOf(object)) === 'removed' && isOld(object);
    for (const { id } of networks.filter(isLate)) await engine.removeNetwork(id);
    for (const { name } of volumes.filter(isLate)) await engine.removeVolume(name);
  }

  return {
    /** Rejects with EngineError. */
    async runOnce(): Promise<void> {
      const [containers, networks, volumes] = await Promise.all([
        engine.listContainers(labels),
        engine.listNetworks(labels),
        engine.listVolumes(labels),
      ]);
      // Rows are read after the lists: a row is always written before its objects are created.
      const phases: PodPhases = new Map(records.list().map((row) => [row.id, row.phase]));
      const isStray = (object: EngineObject) =>
        isOfPod(object) && !phases.has(podIdOf(object)) && isOld(object);
      report([
        ...containers.filter(isStray).map((container) => orphanOf('container', container)),
        ...networks.filter(isStray).map((network) => orphanOf('network', network)),
        ...volumes.filter(isStray).map((volume) => orphanOf('volume', volume)),
      ]);
      await removeLate(networks, volumes, phases);
    },
    /** Result of the last sweep. */
    list: (): readonly Orphan[] => orphans,
  };
}

type PodPhases = Map<string, string>;
type EngineObject = ContainerState | NetworkState | VolumeState;

/**
 * True for objects of pods. Probes and build steps are cleaned up by their own modules. Networks have no label for the
 * kind.
 */
function isOfPod({ labels }: { labels: Record<string, string> }): boolean {
  return (labels[LABELS.kind] ?? 'pod') === 'pod';
}

function podIdOf({ labels }: { labels: Record<string, string> }): string {
  return labels[LABELS.pod] ?? '';
}

function orphanOf(kind: Orphan['kind'], object: EngineObject): Orphan {
  const pod_id = object.labels[LABELS.pod] ?? null;
  // Volumes have a name but no id.
  const id = 'id' in object ? object.id : object.name;
  return { kind, id, name: object.name, pod_id, created_ms: object.createdMs };
}
