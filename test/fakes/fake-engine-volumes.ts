/** The volumes of the engine in memory: what lies in them is not faked. */
import type { Clock } from '#shared/runtime/clock.ts';
import {
  type ContainerEngine,
  EngineError,
  type VolumeState,
} from '../../agent/containers/engine/engine.ts';
import type { FakeCall } from './fake-engine.ts';
import { hasLabels, type World } from './fake-engine-world.ts';

type VolumeMethods = 'createVolume' | 'listVolumes' | 'removeVolume';

/** Of the engine's contract. */
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
          throw new EngineError('conflict', `the volume ${name} belongs to somebody else`);
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

/** A volume as the engine tells of it. */
export function fakeVolume(
  { volumeFolder }: World,
  name: string,
  labels: Record<string, string>,
  clock: Clock,
): VolumeState {
  const hostPath = `${volumeFolder}/${name}/_data`;
  return { name, labels, createdMs: clock.now(), hostPath };
}
