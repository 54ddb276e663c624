/** Objects with our label and this executor's id that no row accounts for: told of, never removed on a guess (agent reference 3). */
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
import type { PodRecords } from './pod-records.ts';

export const ORPHANS_INTERVAL_MS = 5 * 60_000;
/** A younger object may belong to work under way. */
export const ORPHAN_GRACE_MS = 5 * 60_000;
/** Shown and remembered; a host with more of them needs a look by hand anyway. */
const MAX_ORPHANS = 200;

export type OrphanSweep = ReturnType<typeof createOrphanSweep>;

/** They may be the only trace of a lost store, so a signed removal of their pod is what ends them. */
export function createOrphanSweep(deps: {
  executorId: string;
  engine: Pick<
    ContainerEngine,
    'listContainers' | 'listNetworks' | 'removeNetwork' | 'listVolumes' | 'removeVolume'
  >;
  records: PodRecords;
  clock: Clock;
  log: Log;
  /** Called with the present number of each kind after every sweep. */
  onSwept(counts: Record<Orphan['kind'], number>): void;
}) {
  const { engine, records, clock, log } = deps;
  // Networks carry no kind.
  const labels = { [LABELS.managed]: '1', [LABELS.executor]: deps.executorId };
  let orphans: Orphan[] = [];

  function isOld({ createdMs }: { createdMs: number }): boolean {
    const ageMs = clock.now() - createdMs;
    // Made in the future: the clock was set back, and tells nothing.
    return ageMs < 0 || ageMs >= ORPHAN_GRACE_MS;
  }

  function report(found: readonly Orphan[]): void {
    const before = new Set(orphans.map(({ id }) => id));
    for (const orphan of found) {
      if (!before.has(orphan.id)) log.warn({ orphan }, 'an object of ours belongs to no pod');
    }
    orphans = found.slice(0, MAX_ORPHANS);
    const count = (kind: Orphan['kind']) => found.filter((orphan) => orphan.kind === kind).length;
    deps.onSwept({
      container: count('container'),
      network: count('network'),
      volume: count('volume'),
    });
  }

  /** A call cut off by its deadline may make something after its pod is gone: that removal was asked for. */
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
    /** Rejects with EngineError when the engine gives no answer. */
    async runOnce(): Promise<void> {
      const [containers, networks, volumes] = await Promise.all([
        engine.listContainers(labels),
        engine.listNetworks(labels),
        engine.listVolumes(labels),
      ]);
      // Read after the lists: whoever has made something in between has written its row before.
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
    /** As the last sweep has found them. */
    list: (): readonly Orphan[] => orphans,
  };
}

type PodPhases = Map<string, string>;
type EngineObject = ContainerState | NetworkState | VolumeState;

/** Probes and the steps of builds are swept by whoever makes them; networks carry no kind. */
function isOfPod({ labels }: { labels: Record<string, string> }): boolean {
  return (labels[LABELS.kind] ?? 'pod') === 'pod';
}

function podIdOf({ labels }: { labels: Record<string, string> }): string {
  return labels[LABELS.pod] ?? '';
}

function orphanOf(kind: Orphan['kind'], object: EngineObject): Orphan {
  const pod_id = object.labels[LABELS.pod] ?? null;
  // A volume's name is all that it has.
  const id = 'id' in object ? object.id : object.name;
  return { kind, id, name: object.name, pod_id, created_ms: object.createdMs };
}
