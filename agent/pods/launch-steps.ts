/** The steps from an image's name to a running container. */
import type { PodSpec } from '#shared/api/agent/pod.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import {
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
import {
  type Commit,
  LOOK,
  type Outcome,
  outcomeOf,
  runningPatch,
  type StepPorts,
} from './step-ports.ts';

export const MAX_PARALLEL_STARTS = 4;

type Request = ReturnType<typeof podContainer>;

/** Each step ends with one write of the row, so a kill in between is a step to be done again. */
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
    await deps.ssh.portLeft(row);
    await ports.settle(row.id, isPublished);
    if (row.image_id === null) return LOOK;
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
      readOnlyMounts: [...deps.readOnlyMounts, ...deps.ssh.keyMounts(row)],
      gpuMode: deps.gpuMode(),
      display: display.isGiven(),
      // Only better with it: what cannot be read now is done without.
      place: await deps.placeOf(spec).catch(() => null),
      limitsDisk: deps.diskQuota.found() === 'kernel',
    });
    const id = await createPlaced(row, request);
    if (id === null) return LOOK;
    display.created(id);
    const { generation } = row;
    const created = { container_id: id, observed_generation: generation, boot_id: deps.bootId };
    commit(row, () => ({ ...created, phase: 'starting' }));
    return { observed: [justCreated(id, request)] };
  }

  async function persistentMounts(podId: string, { volume }: PodSpec): Promise<VolumeMount[]> {
    return volume === undefined ? [] : [await deps.persistentVolumes.mountOf(volume.id, podId)];
  }

  async function ensureNetwork(podId: string): Promise<string> {
    try {
      return await networks.ensure(podId);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      if (error.kind === 'refused') throw new NetworkUnavailable(error.message, { cause: error });
      if (error.kind !== 'conflict') throw error;
      throw new NameTaken('A network with the name of this pod belongs to somebody else');
    }
  }

  /** Processors beside the GPUs are a gain, not a need: an engine that has them not may choose itself. */
  async function createPlaced(row: PodRow, request: Request): Promise<string | null> {
    try {
      return await createOrFind(row, request);
    } catch (error) {
      const { cpus: _, memoryNodes: __, ...limits } = request.limits;
      const placed = request.limits.cpus !== undefined;
      if (!placed || !(error instanceof EngineError) || error.kind !== 'refused') throw error;
      return createOrFind(row, { ...request, limits });
    }
  }

  /** Null when a container of ours has the name already: then the next look decides what it is worth. */
  async function createOrFind(row: PodRow, request: Request): Promise<string | null> {
    try {
      return await engine.createContainer(request);
    } catch (error) {
      if (!(error instanceof EngineError) || error.kind !== 'conflict') throw error;
      const found = await engine.inspectContainer(request.name);
      const ours = found === null || isOurs(found, row.id);
      if (ours) return null;
      throw new NameTaken(`A container named ${request.name} belongs to somebody else`);
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
    const again = container.status !== 'created';
    const { bootId } = deps;
    const isOwnDoing = row.phase === 'rebooting' || row.phase === 'pending';
    if (again && !isOwnDoing) commit(row, () => ({ phase: 'starting', boot_id: bootId }));
    // The rules may be gone since the network was made, as after a reboot of the host.
    await networks.guarded();
    await deps.ssh.portLeft(row);
    try {
      await starts.run(() => engine.startContainer(container.id));
    } catch (error) {
      // The pod's network may have been removed by hand while it was stopped.
      if (error instanceof EngineError && error.kind === 'not_found') await ensureNetwork(row.id);
      if (error instanceof EngineError && error.kind === 'task_left') {
        await deps.endLeftoverTask(container.id);
        // Its layer would be lost with the container, if it ever ran; else another one has nothing in its way.
        if (!again) await discard(row, container);
      }
      if (!display.isRefused(container.id, error)) throw error;
      await discard(row, container);
      return { observed: [] };
    }
    const running = commit(row, (now) => ({
      ...runningPatch(now, container, bootId),
      restart_count: now.restart_count + (again && !isOwnDoing && isOwnRestart(now) ? 1 : 0),
    }));
    return outcomeOf(running);
  }

  /** The next look creates another. */
  async function discard(row: PodRow, container: ContainerState): Promise<void> {
    commit(row, () => ({ phase: 'creating', container_id: null }));
    await engine.removeContainer(container.id);
  }

  async function rejoinNetwork(row: PodRow, container: ContainerState): Promise<Outcome> {
    await engine.connectNetwork(await ensureNetwork(row.id), container.id);
    return LOOK;
  }

  return { pull, create, start, rejoinNetwork };
}

/** Not one that was asked for, nor one that the host or the engine made necessary. */
function isOwnRestart(row: PodRow): boolean {
  const exit = lastExitOf(row);
  return exit === null || !isInfrastructure(exit.reason);
}

/** What an inspect would say of a container that was created a moment ago. */
function justCreated(id: string, request: Request): ContainerState {
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

// MERGED agent/pods/launch-steps.ts: Whether this host gives containers the driver's display capability: asked for until it is refused once.
/** What the container runtime says where the device of the capability is missing. */
const REFUSAL = /nvidia-modeset/i;
/** Containers made without it that have not been seen to start. */
const MAX_REMEMBERED = 1_000;

/** Forgotten by a restart, which costs one more refused start. */
export function createDisplay() {
  let given = true;
  const without = new Set<string>();

  return {
    isGiven: () => given,
    /** To be told of each new container. */
    created(containerId: string): void {
      if (given) return;
      if (without.size >= MAX_REMEMBERED) without.clear();
      without.add(containerId);
    },
    /** Whether making the container anew, without the capability, can help: at most once per container. */
    isRefused(containerId: string, error: unknown): boolean {
      const refused = error instanceof EngineError && REFUSAL.test(error.message);
      if (!refused || without.delete(containerId)) return false;
      given = false;
      return true;
    },
  };
}
