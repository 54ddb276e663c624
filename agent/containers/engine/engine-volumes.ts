/** The engine's named volumes over dockerode. */
import type Dockerode from 'dockerode';
import { type ContainerEngine, EngineError } from './engine.ts';
import { Anything, VolumeAnswer, VolumeListAnswer } from './engine-answers.ts';
import { DEADLINES_MS, type EngineCall, labelFilter, unless } from './engine-call.ts';

type VolumeMethods = 'createVolume' | 'listVolumes' | 'removeVolume';

/** `call` is the one that the other methods use too. */
export function createEngineVolumes(
  docker: Dockerode,
  call: EngineCall,
): Pick<ContainerEngine, VolumeMethods> {
  return {
    async createVolume(name, labels) {
      await call(DEADLINES_MS.volume, Anything, (abortSignal) => {
        const body = { Name: name, Driver: 'local', Labels: labels };
        // Without these two, dockerode would send the whole request in the query string as well.
        const request = { _query: {}, _body: body, abortSignal };
        return docker.createVolume(request);
      });
      // The engine answers with whatever has the name already, whoever made it.
      const made = await call(DEADLINES_MS.volume, VolumeAnswer, (abortSignal) =>
        docker.getVolume(name).inspect({ abortSignal }),
      );
      const isOurs = Object.entries(labels).every(([label, value]) => made.labels[label] === value);
      if (!isOurs) throw new EngineError('conflict', `the volume ${name} belongs to somebody else`);
    },
    listVolumes: (labels) =>
      call(DEADLINES_MS.volume, VolumeListAnswer, (abortSignal) =>
        docker.listVolumes({ filters: labelFilter(labels), abortSignal }),
      ),
    async removeVolume(name) {
      const removed = call(DEADLINES_MS.removeVolume, Anything, (abortSignal) =>
        docker.getVolume(name).remove({ abortSignal }),
      );
      await unless(['not_found'], undefined, removed);
    },
  };
}
