/** The effects of a plan's steps, each of which may be cut off anywhere and run again. */
import type { PullProgress } from '#shared/agent-api/pod.ts';
import type { Clock } from '#shared/clock.ts';
import type { Random } from '#shared/random.ts';
import { createSemaphore } from '#shared/semaphore.ts';
import {
  type ContainerEngine,
  type ContainerState,
  EngineError,
  LABELS,
} from '../docker/engine.ts';
import type { GpuLeases } from '../gpu/gpu-lease.ts';
import type { ImageService } from '../images/image.service.ts';
import type { PodNetworks } from '../network/pod-network.ts';
import type { PortService } from '../ports/port.service.ts';
import type { PodRow } from '../store/pod.store.ts';
import { afterExit, afterFailure } from './pod.backoff.ts';
import { type GpuMode, podContainer } from './pod.container.ts';
import { NameTaken } from './pod.failure.ts';
import type { Step } from './pod.plan.ts';
import { specOf } from './pod.record.ts';
import type { PodPatch, PodRecords } from './pod.records.ts';

export type StepPorts = {
  executorId: string;
  engine: ContainerEngine;
  records: PodRecords;
  images: ImageService;
  ports: PortService;
  gpuLeases: GpuLeases;
  gpuMode(): GpuMode;
  networks: PodNetworks;
  clock: Clock;
  random: Random;
  onPull(podId: string, progress: PullProgress | null): void;
};

/** `settled`: nothing is left to do now; otherwise the containers if they are known, or null to look. */
export type Outcome = 'settled' | { observed: readonly ContainerState[] | null };

export type PodSteps = ReturnType<typeof createPodSteps>;

export const MAX_PARALLEL_STARTS = 4;
const LOOK: Outcome = { observed: null };
const LOST = 'The container was removed by something other than the agent';

/** `run` rejects with what the engine or an image or port service threw; pod.failure.ts reads it. */
export function createPodSteps(deps: StepPorts) {
  const { engine, records, images, ports, gpuLeases, networks, clock, random } = deps;
  const starts = createSemaphore(MAX_PARALLEL_STARTS);

  /** Writes only if what was planned is still wanted; otherwise the next plan sees what has changed. */
  function commit(planned: PodRow, decide: (row: PodRow) => PodPatch | null): PodRow | null {
    return records.change(planned.id, (row) =>
      row.generation === planned.generation && row.desired === planned.desired ? decide(row) : null,
    );
  }

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
    await ports.settle(row.id);
    if (row.image_id === null) return LOOK;
    const request = podContainer({
      executorId: deps.executorId,
      row,
      spec,
      imageId: row.image_id,
      network: await ensureNetwork(row.id),
      ports: ports.portsOf(row.id),
      gpuMode: deps.gpuMode(),
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
      if (!(error instanceof EngineError) || error.kind !== 'conflict') throw error;
      throw new NameTaken('A network with the name of this pod belongs to somebody else');
    }
  }

  /** Null when a container of ours has the name already: then the next look decides what it is worth. */
  async function createOrFind(
    row: PodRow,
    request: ReturnType<typeof podContainer>,
  ): Promise<string | null> {
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

  async function removeContainers(
    row: PodRow,
    containers: readonly ContainerState[],
  ): Promise<Outcome> {
    if (row.desired === 'running') {
      const phase = row.phase === 'creating' ? 'creating' : 'pending';
      commit(row, () => ({ phase, container_id: null }));
    }
    const grace = specOf(row).stop_grace_seconds;
    for (const container of containers) {
      if (container.status === 'running') await engine.stopContainer(container.id, grace);
      await engine.removeContainer(container.id);
    }
    return LOOK;
  }

  async function finishRemoval(row: PodRow): Promise<Outcome> {
    await networks.remove(row.id);
    await gpuLeases.release(row.id, () => false);
    records.transaction(() => {
      ports.release(row.id);
      const gone = { container_id: null, image_id: null, reason: null, message: '' };
      records.apply(row.id, () => ({ ...gone, phase: 'removed', next_retry_ms: null }));
    });
    return 'settled';
  }

  async function stopForReboot(row: PodRow, container: ContainerState): Promise<Outcome> {
    await engine.stopContainer(container.id, specOf(row).stop_grace_seconds);
    return LOOK;
  }

  function beginReboot(row: PodRow, container: ContainerState): Outcome {
    commit(row, (now) => ({
      phase: 'rebooting',
      reboot_target: now.reboots_requested,
      reboot_from_ms: container.startedMs,
      next_retry_ms: null,
      attempts: 0,
    }));
    return { observed: [container] };
  }

  function recordExit(step: Extract<Step, { kind: 'record_exit' }>, row: PodRow): Outcome {
    const at = { nowMs: clock.now(), random, hostRebooted: step.hostRebooted };
    commit(row, (now) => afterExit(now, step.container, at));
    return { observed: [step.container] };
  }

  function recordLost(row: PodRow): Outcome {
    const failure = { reason: 'Internal', message: LOST } as const;
    commit(row, (now) => ({
      ...afterFailure(now, failure, { nowMs: clock.now(), random }),
      container_id: null,
      image_id: null,
      reboots_done: now.reboots_requested,
    }));
    return { observed: [] };
  }

  return {
    commit,
    async run(
      step: Exclude<Step, { kind: 'wait' }>,
      row: PodRow,
      signal: AbortSignal,
    ): Promise<Outcome> {
      switch (step.kind) {
        case 'pull':
          return pull(row, signal);
        case 'create':
          return create(row);
        case 'start':
          return start(row, step.container);
        case 'adopt':
        case 'finish_reboot':
          commit(row, (now) => runningPatch(now, step.container));
          return 'settled';
        case 'record_exit':
          return recordExit(step, row);
        case 'record_lost':
          return recordLost(row);
        case 'begin_reboot':
          return beginReboot(row, step.container);
        case 'stop_for_reboot':
          return stopForReboot(row, step.container);
        case 'remove_containers':
          return removeContainers(row, step.containers);
        case 'finish_removal':
          return finishRemoval(row);
      }
    },
  };
}

function runningPatch(row: PodRow, container: ContainerState): PodPatch {
  return {
    phase: 'running',
    container_id: container.id,
    image_id: row.image_id ?? container.imageId,
    observed_generation: row.generation,
    reason: null,
    message: '',
    next_retry_ms: null,
    port_conflicts: 0,
    ...(row.phase === 'rebooting' ? { reboots_done: row.reboot_target } : {}),
  };
}

/** What an inspect would say of a container that was created a moment ago. */
function justCreated(id: string, request: ReturnType<typeof podContainer>): ContainerState {
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
  };
}
