/** The steps from an image's name to a running container. */
import type { PullProgress } from '#shared/agent-api/pod.ts';
import { createSemaphore } from '#shared/semaphore.ts';
import { type ContainerState, EngineError, LABELS } from '../docker/engine.ts';
import { NetworkUnavailable } from '../network/network-unavailable.ts';
import type { PodRow } from '../store/pod.store.ts';
import { podContainer } from './pod.container.ts';
import { NameTaken } from './pod.failure.ts';
import { isGatewayPort, publishedPorts, specOf } from './pod.record.ts';
import { type Commit, LOOK, type Outcome, runningPatch, type StepPorts } from './pod.step.ts';

export const MAX_PARALLEL_STARTS = 4;

type Request = ReturnType<typeof podContainer>;

/** Each step ends with one write of the row, so a kill in between is a step to be done again. */
export function createLaunch(deps: StepPorts, commit: Commit) {
  const { engine, records, images, ports, gpuLeases, networks } = deps;
  const starts = createSemaphore(MAX_PARALLEL_STARTS);

  async function pull(row: PodRow, signal: AbortSignal): Promise<Outcome> {
    const { reference, digest } = specOf(row).image;
    const pinned = row.image_digest ?? digest;
    const onProgress = (progress: PullProgress) => {
      commit(row, (now) => (now.phase === 'pulling' ? null : { phase: 'pulling' }));
      deps.onPull(row.id, progress);
    };
    try {
      const wanted = pinned === undefined ? { reference } : { reference, digest: pinned };
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
    const wantsGpu = (uuid: string) => isWantedNow(row.id, uuid);
    await gpuLeases.release(row.id, wantsGpu);
    ports.release(row.id, spec.internal_ports);
    await ports.settle(row.id, (internal) => !isGatewayPort(spec, internal));
    if (row.image_id === null) return LOOK;
    const request = podContainer({
      executorId: deps.executorId,
      row,
      spec,
      imageId: row.image_id,
      network: await ensureNetwork(row.id),
      ports: publishedPorts(row, ports.portsOf(row.id)),
      readOnlyMounts: deps.readOnlyMounts,
      gpuMode: deps.gpuMode(),
      limitsDisk: deps.diskQuota.found() === 'kernel',
    });
    const id = await createOrFind(row, request);
    if (id === null) return LOOK;
    const { generation } = row;
    commit(row, () => ({ phase: 'starting', container_id: id, observed_generation: generation }));
    return { observed: [justCreated(id, request)] };
  }

  /** A renewed PUT may ask again for a GPU that the generation before it had given up. */
  function isWantedNow(podId: string, uuid: string): boolean {
    const row = records.get(podId);
    return row?.desired === 'running' && specOf(row).gpu_uuids.includes(uuid);
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
    if (again && row.phase !== 'rebooting') commit(row, () => ({ phase: 'starting' }));
    // The rules may be gone since the network was made, as after a reboot of the host.
    await networks.guarded();
    try {
      await starts.run(() => engine.startContainer(container.id));
    } catch (error) {
      // The pod's network may have been removed by hand while it was stopped.
      if (error instanceof EngineError && error.kind === 'not_found') await ensureNetwork(row.id);
      throw error;
    }
    const running = commit(row, (now) => ({
      ...runningPatch(now, container),
      restart_count: now.restart_count + (again && now.phase !== 'rebooting' ? 1 : 0),
    }));
    return running === null ? LOOK : 'settled';
  }

  return { pull, create, start };
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
    logPath: '',
  };
}
