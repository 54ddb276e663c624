/** Steps that launch a pod: pull or build the image, create the container, start it. */
import type { PodSpec } from '#shared/api/agent/pod.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import {
  type ContainerSpec,
  type ContainerState,
  EngineError,
  LABELS,
  type VolumeMount,
} from '../containers/engine/engine.ts';
import { NameTaken } from '../containers/engine/labels.ts';
import type { BuildProgress } from '../containers/images/build.service.ts';
import { NetworkUnavailable } from '../containers/network/firewall.ts';
import { isInfrastructure } from './backoff.ts';
import { podContainer } from './container-spec.ts';
import type { PodRow } from './pod.store.ts';
import { isGatewayPort, lastExitOf, publishedPorts, specOf } from './pod-row.ts';
import { ownerFor } from './pod-secrets.ts';
import {
  type Commit,
  type Outcome,
  outcomeOf,
  RELIST,
  runningPatch,
  type StepPorts,
} from './step-ports.ts';

export const MAX_PARALLEL_STARTS = 4;

/** Creates the steps. Each ends with one write of the row, so an interrupted step is run again. */
export function createLaunch(deps: StepPorts, commit: Commit) {
  const { engine, images, ports, networks } = deps;
  const starts = createSemaphore(MAX_PARALLEL_STARTS);
  const display = createDisplay();

  async function pull(row: PodRow, signal: AbortSignal): Promise<Outcome> {
    const onProgress = (progress: BuildProgress) => {
      const phase = progress === 'building' ? 'building' : 'pulling';
      commit(row, (now) => (now.phase === phase ? null : { phase }));
      deps.onPull(row.id, progress === 'building' ? null : progress);
    };
    try {
      const { id: podId, generation, image_digest: digest } = row;
      const wanted = { podId, generation, spec: specOf(row), digest };
      const ready = await images.ensure(wanted, onProgress, signal);
      const done = { image_id: ready.imageId, image_digest: ready.digest };
      commit(row, () => ({ ...done, phase: 'creating', reason: null, message: '' }));
    } finally {
      deps.onPull(row.id, null);
    }
    return { observed: [] };
  }

  async function create(row: PodRow): Promise<Outcome> {
    const spec = specOf(row);
    const isPublished = (internal: number) =>
      spec.internal_ports.includes(internal) && !isGatewayPort(spec, internal);
    await deps.ssh.waitForPortRelease(row);
    await ports.replaceBusy(row.id, isPublished);
    if (row.image_id === null) return RELIST;
    const request = podContainer({
      executorId: deps.executorId,
      row,
      spec,
      imageId: row.image_id,
      network: await ensureNetwork(row.id),
      volumes: [
        ...(await deps.volumes.ensure(row.id, spec.volumes)),
        ...(await persistentMounts(row.id, spec)),
      ],
      ports: publishedPorts(row, ports.portsOf(row.id)),
      readOnlyMounts: [
        ...deps.readOnlyMounts,
        ...deps.ssh.keyMounts(row),
        ...(await secretMounts(row)),
      ],
      gpuMode: deps.gpuMode(),
      display: display.isRequested(),
      // Placement is optional: without NUMA data the pod runs anywhere.
      place: await deps.placeOf(spec).catch(() => null),
      limitsDisk: deps.diskQuota.found() === 'kernel',
    });
    const id = await createPlaced(row, request);
    if (id === null) return RELIST;
    display.created(id);
    const { generation } = row;
    const created = { container_id: id, observed_generation: generation, boot_id: deps.bootId };
    commit(row, () => ({ ...created, phase: 'starting' }));
    return { observed: [justCreated(id, request)] };
  }

  async function persistentMounts(podId: string, { volume }: PodSpec): Promise<VolumeMount[]> {
    return volume === undefined ? [] : [await deps.persistentVolumes.mountOf(volume.id, podId)];
  }

  /** Writes the files of the pod's secrets, which a reboot of the host removes. */
  async function secretMounts(row: PodRow) {
    const { secret_names: names } = specOf(row);
    if (names.length === 0) return [];
    const image = row.image_id === null ? null : await engine.inspectImage(row.image_id);
    return deps.secrets.mounts(row.id, names, ownerFor(image?.user ?? ''));
  }

  async function ensureNetwork(podId: string): Promise<string> {
    try {
      return await networks.ensure(podId);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      if (error.kind === 'refused') throw new NetworkUnavailable(error.message, { cause: error });
      if (error.kind !== 'conflict') throw error;
      throw new NameTaken(
        'A network with the name of this pod exists and belongs to another owner',
      );
    }
  }

  /** Creates the container with a placement near its GPUs, or without one if the engine refuses it. */
  async function createPlaced(row: PodRow, request: ContainerSpec): Promise<string | null> {
    try {
      return await createOrFind(row, request);
    } catch (error) {
      const { cpus: _, memoryNodes: __, ...limits } = request.limits;
      const placed = request.limits.cpus !== undefined;
      if (!placed || !(error instanceof EngineError) || error.kind !== 'refused') throw error;
      return createOrFind(row, { ...request, limits });
    }
  }

  /** Creates the container. Null if a container of this pod already has the name: the next plan decides about it. */
  async function createOrFind(row: PodRow, request: ContainerSpec): Promise<string | null> {
    try {
      return await engine.createContainer(request);
    } catch (error) {
      if (!(error instanceof EngineError) || error.kind !== 'conflict') throw error;
      const found = await engine.inspectContainer(request.name);
      const ours = found === null || isOurs(found, row.id);
      if (ours) return null;
      throw new NameTaken(`A container named ${request.name} exists and belongs to another owner`);
    }
  }

  function isOurs({ labels }: ContainerState, podId: string): boolean {
    return (
      labels[LABELS.managed] === '1' &&
      labels[LABELS.executor] === deps.executorId &&
      labels[LABELS.pod] === podId
    );
  }

  async function start(row: PodRow, container: ContainerState): Promise<Outcome> {
    const isRestart = container.status !== 'created';
    const { bootId } = deps;
    const isRequested = row.phase === 'rebooting' || row.phase === 'pending';
    if (isRestart && !isRequested) commit(row, () => ({ phase: 'starting', boot_id: bootId }));
    // A reboot of the host may have removed the firewall rules since the network was created.
    await networks.guarded();
    await secretMounts(row);
    await deps.ssh.waitForPortRelease(row);
    try {
      await starts.run(() => engine.startContainer(container.id));
    } catch (error) {
      // The pod's network may have been removed manually while the pod was stopped.
      if (error instanceof EngineError && error.kind === 'not_found') await ensureNetwork(row.id);
      if (error instanceof EngineError && error.kind === 'task_left') {
        await deps.endLeftoverTask(container.id);
        // A container that never ran is replaced. One that ran is kept, because its writable layer contains data.
        if (!isRestart) await discard(row, container);
      }
      if (!display.isRefused(container.id, error)) throw error;
      await discard(row, container);
      return { observed: [] };
    }
    const running = commit(row, (now) => ({
      ...runningPatch(now, container, bootId),
      restart_count:
        now.restart_count + (isRestart && !isRequested && isPodsOwnRestart(now) ? 1 : 0),
    }));
    return outcomeOf(running);
  }

  /** Removes the container; the next plan creates another. */
  async function discard(row: PodRow, container: ContainerState): Promise<void> {
    commit(row, () => ({ phase: 'creating', container_id: null }));
    await engine.removeContainer(container.id);
  }

  async function rejoinNetwork(row: PodRow, container: ContainerState): Promise<Outcome> {
    await engine.connectNetwork(await ensureNetwork(row.id), container.id);
    return RELIST;
  }

  return { pull, create, start, rejoinNetwork };
}

/** Returns true if neither a request, nor the host, nor the engine caused the restart. */
function isPodsOwnRestart(row: PodRow): boolean {
  const exit = lastExitOf(row);
  return exit === null || !isInfrastructure(exit.reason);
}

/** The state that an inspect would return for a new container. */
function justCreated(id: string, request: ContainerSpec): ContainerState {
  return {
    id,
    name: request.name,
    labels: request.labels,
    status: 'created',
    exitCode: 0,
    oomKilled: false,
    startError: '',
    startedMs: 0,
    finishedMs: 0,
    imageId: request.image,
    createdMs: 0,
    pid: 0,
    networks: request.network === null ? [] : [request.network],
    logPath: '',
  };
}

/** Pattern of the container runtime's error if the device of the display capability is missing. */
const REFUSAL = /nvidia-modeset/i;
/** Limit of remembered containers that have not started yet. */
const MAX_REMEMBERED = 1_000;

/**
 * Requests the driver's display capability until the runtime refuses it once. After a restart of the agent, the runtime
 * refuses the first start again.
 */
export function createDisplay() {
  let isSupported = true;
  const without = new Set<string>();

  return {
    isRequested: () => isSupported,
    /** Records a new container. */
    created(containerId: string): void {
      if (isSupported) return;
      if (without.size >= MAX_REMEMBERED) without.clear();
      without.add(containerId);
    },
    /** True if a new container without the capability may start; at most once per container. */
    isRefused(containerId: string, error: unknown): boolean {
      const refused = error instanceof EngineError && REFUSAL.test(error.message);
      if (!refused || without.delete(containerId)) return false;
      isSupported = false;
      return true;
    },
  };
}
