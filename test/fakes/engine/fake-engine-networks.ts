/** Networks and volumes of the engine in memory. Volumes have no content. */
import type { Clock } from '#shared/runtime/clock.ts';
import {
  type ContainerEngine,
  EngineError,
  type VolumeState,
} from '../../../agent/containers/engine/engine.ts';
import type { FakeCall } from './fake-engine.ts';
import { hasLabels, type World, type WorldActions } from './fake-engine-world.ts';

type NetworkMethods = 'ensureNetwork' | 'connectNetwork' | 'listNetworks' | 'removeNetwork';

export function createNetworkMethods(
  { networks }: World,
  { newId, get }: WorldActions,
  call: FakeCall,
  clock: Clock,
): Pick<ContainerEngine, NetworkMethods> {
  return {
    ensureNetwork: (name, labels, place) =>
      call('ensureNetwork', name, () => {
        const present = networks.get(name);
        if (present !== undefined && !hasLabels(present.labels, labels)) {
          throw new EngineError('conflict', `network with name ${name} already exists`);
        }
        const { subnet } = place;
        if (
          present === undefined &&
          [...networks.values()].some((other) => other.place.subnet === subnet)
        ) {
          throw new EngineError(
            'subnet_taken',
            'Pool overlaps with other one on this address space',
          );
        }
        const network = present ?? { id: newId(), name, labels, place, createdMs: clock.now() };
        networks.set(name, network);
        return { id: network.id };
      }),
    connectNetwork: (name, id) =>
      call('connectNetwork', id, () => {
        if (!networks.has(name)) throw new EngineError('not_found', `network ${name} not found`);
        get(id).networks = [name];
      }),
    listNetworks: (labels) =>
      call('listNetworks', '', () =>
        [...networks.values()].filter((network) => hasLabels(network.labels, labels)),
      ),
    removeNetwork: (nameOrId) =>
      call('removeNetwork', nameOrId, () => {
        for (const { id, name } of networks.values()) {
          if (id === nameOrId || name === nameOrId) networks.delete(name);
        }
      }),
  };
}

type VolumeMethods = 'createVolume' | 'listVolumes' | 'removeVolume';

export function createVolumeMethods(
  world: World,
  call: FakeCall,
  clock: Clock,
): Pick<ContainerEngine, VolumeMethods> {
  const { volumes, containers } = world;
  return {
    createVolume: (name, labels) =>
      call('createVolume', name, () => {
        const present = volumes.get(name) ?? fakeVolume(world, name, labels, clock);
        if (!hasLabels(present.labels, labels)) {
          throw new EngineError('conflict', `volume ${name} has other labels`);
        }
        volumes.set(name, present);
      }),
    listVolumes: (labels) =>
      call('listVolumes', '', () =>
        [...volumes.values()].filter((volume) => hasLabels(volume.labels, labels)),
      ),
    removeVolume: (name) =>
      call('removeVolume', name, () => {
        const users = [...containers.values()].flatMap(({ spec }) => spec.volumes ?? []);
        if (users.some((mount) => mount.name === name)) {
          throw new EngineError('conflict', `volume ${name} is in use`);
        }
        volumes.delete(name);
      }),
  };
}

/** A volume as the engine describes it. */
export function fakeVolume(
  { volumeFolder }: World,
  name: string,
  labels: Record<string, string>,
  clock: Clock,
): VolumeState {
  const hostPath = `${volumeFolder}/${name}/_data`;
  return { name, labels, createdMs: clock.now(), hostPath };
}
