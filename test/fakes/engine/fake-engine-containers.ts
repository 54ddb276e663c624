/** Containers of the engine in memory. */
import type { Clock } from '#shared/runtime/clock.ts';
import {
  type ContainerEngine,
  type ContainerUsage,
  EngineError,
} from '../../../agent/containers/engine/engine.ts';
import type { FakeCall } from './fake-engine.ts';
import { fakeVolume } from './fake-engine-networks.ts';
import { hasLabels, type World, type WorldActions } from './fake-engine-world.ts';

type ContainerMethods =
  | 'createContainer'
  | 'startContainer'
  | 'stopContainer'
  | 'removeContainer'
  | 'inspectContainer'
  | 'limitPids'
  | 'containerDiskBytes'
  | 'containerFiles'
  | 'containerLaunch'
  | 'containerUsage'
  | 'listContainers'
  | 'waitContainer';

/** Usage of a container for which the test sets no usage. */
export const IDLE_USAGE: ContainerUsage = {
  cpuNanos: 0,
  memoryBytes: 0,
  memoryWithFilesBytes: 0,
  residentBytes: null,
  cacheBytes: null,
  network: null,
  blockIo: null,
  tasks: null,
};

export function createContainerMethods(
  world: World,
  { newId, find, get, end, remove, start }: WorldActions,
  call: FakeCall,
  clock: Clock,
): Pick<ContainerEngine, ContainerMethods> {
  const { containers, images, volumes, diskBytes, usages, exits } = world;

  return {
    createContainer: (spec) =>
      call('createContainer', spec.name, () => {
        if (find(spec.name) !== undefined) {
          throw new EngineError('conflict', `the name ${spec.name} is in use`);
        }
        if (spec.limits.diskBytes !== undefined) {
          throw new EngineError('refused', '--storage-opt is supported only for overlay over xfs');
        }
        const image =
          images.get(spec.image) ?? [...images.values()].find(({ id }) => id === spec.image);
        if (image === undefined) throw new EngineError('not_found', `No such image: ${spec.image}`);
        const id = newId();
        const { name, labels } = spec;
        for (const { name: volume, labels: own } of spec.volumes ?? []) {
          if (!volumes.has(volume)) volumes.set(volume, fakeVolume(world, volume, own, clock));
        }
        const never = {
          exitCode: 0,
          oomKilled: false,
          startError: '',
          startedMs: 0,
          finishedMs: 0,
        };
        containers.set(id, {
          ...never,
          id,
          name,
          labels,
          spec,
          status: 'created',
          imageId: image.id,
          createdMs: clock.now(),
          pid: 0,
          networks: spec.network === null ? [] : [spec.network],
          logPath: `/var/lib/docker/containers/${id}/${id}-json.log`,
        });
        return id;
      }),
    startContainer: (id) => call('startContainer', id, () => start(get(id))),
    stopContainer: (id) =>
      call('stopContainer', id, () => {
        const container = find(id);
        if (container !== undefined) end(container, 143, false);
      }),
    removeContainer: (id) =>
      call('removeContainer', id, () => {
        const container = find(id);
        if (container !== undefined) remove(container);
      }),
    inspectContainer: (idOrName) =>
      call('inspectContainer', idOrName, () => {
        const found = find(idOrName);
        return found === undefined ? null : { ...found };
      }),
    limitPids: (id, pids) =>
      call('limitPids', id, () => {
        const found = find(id);
        if (found !== undefined) found.spec.limits.pids = pids;
      }),
    containerDiskBytes: (id) =>
      call('containerDiskBytes', id, () => {
        const found = find(id);
        return found === undefined ? null : (diskBytes.get(found.id) ?? 0);
      }),
    containerFiles: (id) =>
      call('containerFiles', id, () => {
        const found = find(id);
        if (found === undefined) return null;
        const mounts = (found.spec.volumes ?? []).map(({ name, target }) => ({
          target,
          volumeFolder: volumes.get(name)?.hostPath ?? null,
        }));
        return { layers: null, mounts };
      }),
    containerLaunch: (id) =>
      call('containerLaunch', id, () => {
        const found = find(id);
        if (found === undefined) return null;
        return { ports: found.spec.ports, environment: found.spec.environment };
      }),
    containerUsage: (id) =>
      call('containerUsage', id, () => {
        const found = find(id);
        return found?.status === 'running' ? (usages.get(found.id) ?? IDLE_USAGE) : null;
      }),
    listContainers: (labels) =>
      call('listContainers', '', () =>
        [...containers.values()]
          .filter((container) => hasLabels(container.labels, labels))
          .map((container) => ({ ...container })),
      ),
    waitContainer: (id, signal) =>
      call('waitContainer', id, async () => {
        const container = get(id);
        if (container.status === 'running') {
          await new Promise<void>((resolve, reject) => {
            exits.set(id, [...(exits.get(id) ?? []), resolve]);
            if (signal.aborted) throw new EngineError('deadline', 'the wait was aborted');
            const ended = () => reject(new EngineError('deadline', 'the wait was aborted'));
            signal.addEventListener('abort', ended, { once: true });
          });
        }
        return container.exitCode;
      }),
  };
}
