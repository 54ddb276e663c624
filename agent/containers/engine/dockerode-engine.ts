/** ContainerEngine over dockerode. Only this folder imports dockerode. */
import { z } from 'zod';
import type { Clock } from '#shared/runtime/clock.ts';
import { createSemaphore } from '#shared/runtime/semaphore.ts';
import { containerOptions } from './container-options.ts';
import { createDockerClient, type Docker } from './docker-client.ts';
import { type ContainerEngine, type ContainerState, EngineError } from './engine.ts';
import {
  Anything,
  ContainerAnswer,
  ContainerFilesAnswer,
  ContainerLaunchAnswer,
  ContainerListAnswer,
  ContainerSizeAnswer,
  ContainerUsageAnswer,
  CreatedAnswer,
  DiskAnswer,
  EventAnswer,
  InfoAnswer,
  NetworkAnswer,
  VolumeAnswer,
  VolumeListAnswer,
  WaitAnswer,
} from './engine-answers.ts';
import {
  createEngineCall,
  DEADLINES_MS,
  type EngineCall,
  labelFilter,
  orAborted,
  unless,
} from './engine-call.ts';
import { toEngineError } from './engine-errors.ts';
import { createEngineImages } from './engine-images.ts';
import { bytesOf, jsonLines, logFrames } from './engine-stream.ts';

const MS_PER_SECOND = 1_000;
/** Concurrent inspections of one list. More would only delay requests for single pods. */
const MAX_INSPECTIONS = 8;
const DEFAULT_NETWORK = 'bridge';

export function createDockerodeEngine(options: {
  socketPath: string;
  clock: Clock;
}): ContainerEngine {
  const { clock } = options;
  const call = createEngineCall(clock);
  const docker = createDockerClient(options.socketPath);

  const inspectContainer = (idOrName: string): Promise<ContainerState | null> =>
    unless(
      ['not_found'],
      null,
      call(DEADLINES_MS.inspect, ContainerAnswer, (abortSignal) =>
        docker.getContainer(idOrName).inspect({ abortSignal }),
      ),
    );

  const listNetworks = (labels: Record<string, string>) =>
    call(DEADLINES_MS.network, z.array(NetworkAnswer), (abortSignal) =>
      docker.listNetworks({ filters: labelFilter(labels), abortSignal }),
    );

  return {
    // dockerode accepts no signal for these calls, so requests continue after their deadline.
    async ping() {
      await call(DEADLINES_MS.inspect, Anything, () => docker.ping());
    },
    info: () => call(DEADLINES_MS.inspect, InfoAnswer, () => docker.info()),
    engineDiskBytes: () => call(DEADLINES_MS.size, DiskAnswer, () => docker.df()),
    ...createEngineImages(docker, call, clock),
    ...createEngineVolumes(docker, call),
    async startedMs() {
      // The engine recreates its default network at each start, unless live restore kept containers running.
      const bridge = call(DEADLINES_MS.inspect, NetworkAnswer, () =>
        docker.getNetwork(DEFAULT_NETWORK).inspect(),
      );
      const found = await unless(['not_found'], null, bridge);
      return found?.createdMs ?? 0;
    },

    async ensureNetwork(name, labels, { subnet, bridgeName }) {
      try {
        const created = await call(DEADLINES_MS.network, CreatedAnswer, async (abortSignal) => {
          const { id } = await docker.createNetwork({
            Name: name,
            Driver: 'bridge',
            CheckDuplicate: true,
            Labels: labels,
            EnableIPv6: false,
            // The engine's default pools contain only a few tens of networks.
            IPAM: { Config: [{ Subnet: subnet }] },
            Options: {
              'com.docker.network.bridge.enable_icc': 'false',
              'com.docker.network.bridge.name': bridgeName,
            },
            abortSignal,
          });
          return { Id: id };
        });
        return { id: created.Id };
      } catch (error) {
        if (!(error instanceof EngineError) || error.kind !== 'conflict') throw error;
        const found = (await listNetworks(labels)).find((network) => network.name === name);
        if (found === undefined) throw error;
        return { id: found.id };
      }
    },
    async connectNetwork(name, containerId) {
      await call(DEADLINES_MS.network, Anything, (abortSignal) => {
        // In a variable: dockerode's types lack `abortSignal`, so a literal in the call would not compile.
        const options = { Container: containerId, abortSignal };
        return docker.getNetwork(name).connect(options);
      });
    },
    listNetworks,
    async removeNetwork(nameOrId) {
      await unless(
        ['not_found'],
        undefined,
        call(DEADLINES_MS.network, Anything, (abortSignal) =>
          docker.getNetwork(nameOrId).remove({ abortSignal }),
        ),
      );
    },

    async createContainer(spec) {
      const hasVolumes = (spec.volumes ?? []).length > 0;
      const deadlineMs = hasVolumes ? DEADLINES_MS.createWithVolumes : DEADLINES_MS.create;
      const { Id } = await call(deadlineMs, CreatedAnswer, async (abortSignal) => {
        // Without `_query` and `_body`, dockerode would also send the whole request in the query string.
        const request = { _query: { name: spec.name }, _body: containerOptions(spec), abortSignal };
        return { Id: (await docker.createContainer(request)).id };
      });
      return Id;
    },
    async startContainer(id) {
      await call(DEADLINES_MS.start, Anything, (abortSignal) =>
        unlessUnchanged(docker.getContainer(id).start({ abortSignal })),
      );
    },
    async stopContainer(id, graceSeconds) {
      const deadlineMs = graceSeconds * MS_PER_SECOND + DEADLINES_MS.stop;
      const stopped = call(deadlineMs, Anything, (abortSignal) =>
        unlessUnchanged(docker.getContainer(id).stop({ t: graceSeconds, abortSignal })),
      );
      await unless(['not_found'], undefined, stopped);
    },
    async removeContainer(id) {
      const removed = call(DEADLINES_MS.create, Anything, (abortSignal) =>
        docker.getContainer(id).remove({ force: true, v: true, abortSignal }),
      );
      await unless(['not_found'], undefined, removed);
    },
    inspectContainer,
    async limitPids(id, pids) {
      const limited = call(DEADLINES_MS.inspect, Anything, (abortSignal) =>
        docker.getContainer(id).update({ PidsLimit: pids, abortSignal }),
      );
      // The engine reports a conflict if the container has ended.
      await unless(['not_found', 'conflict'], undefined, limited);
    },
    async containerDiskBytes(id) {
      const size = call(DEADLINES_MS.size, ContainerSizeAnswer, (abortSignal) => {
        // In a variable: dockerode's types lack `size`, so a literal in the call would not compile.
        const options = { size: true, abortSignal };
        return docker.getContainer(id).inspect(options);
      });
      return unless(
        ['not_found'],
        null,
        size.then((answer) => answer.SizeRw),
      );
    },
    containerFiles(id) {
      const files = call(DEADLINES_MS.inspect, ContainerFilesAnswer, (abortSignal) =>
        docker.getContainer(id).inspect({ abortSignal }),
      );
      return unless(['not_found'], null, files);
    },
    containerLaunch(id) {
      const launch = call(DEADLINES_MS.inspect, ContainerLaunchAnswer, (abortSignal) =>
        docker.getContainer(id).inspect({ abortSignal }),
      );
      return unless(['not_found'], null, launch);
    },
    containerUsage(id) {
      // `one-shot` skips the second sample, which would take a second.
      const usage = call(DEADLINES_MS.inspect, ContainerUsageAnswer, (abortSignal) => {
        // In a variable: dockerode's types lack `abortSignal`, so a literal in the call would not compile.
        const options = { stream: false as const, 'one-shot': true, abortSignal };
        return docker.getContainer(id).stats(options);
      });
      return unless(['not_found'], null, usage);
    },
    async listContainers(labels) {
      const rows = await call(DEADLINES_MS.list, ContainerListAnswer, (abortSignal) =>
        docker.listContainers({ all: true, filters: labelFilter(labels), abortSignal }),
      );
      // The list has neither exit codes nor times.
      const inspections = createSemaphore(MAX_INSPECTIONS);
      const states = await Promise.all(
        rows.map((row) => inspections.run(() => inspectContainer(row.Id))),
      );
      return states.filter((state) => state !== null);
    },
    async waitContainer(id, signal) {
      try {
        const waiting = docker.getContainer(id).wait({ abortSignal: signal });
        return WaitAnswer.parse(await orAborted(waiting, signal)).StatusCode;
      } catch (error) {
        throw toEngineError(error);
      }
    },

    async *containerLogs(id, { tail, follow, sinceMs }, signal) {
      const query = {
        stdout: true,
        stderr: true,
        timestamps: true,
        follow,
        tail,
        ...(sinceMs === undefined ? {} : { since: (sinceMs / MS_PER_SECOND).toFixed(3) }),
      };
      try {
        // `follow: true` makes dockerode return a stream; the engine receives `_query`.
        const request = { follow: true as const, _query: query, abortSignal: signal };
        const stream = await docker.getContainer(id).logs(request);
        yield* logFrames(bytesOf(stream));
      } catch (error) {
        if (!signal.aborted) throw toEngineError(error);
      }
    },
    async *events(labels, signal, onOpen) {
      try {
        const filters = JSON.stringify({ type: ['container'], ...labelFilter(labels) });
        const stream = await docker.getEvents({ filters, abortSignal: signal });
        onOpen?.();
        yield* jsonLines(bytesOf(stream), EventAnswer);
      } catch (error) {
        if (!signal.aborted) throw toEngineError(error);
      }
      if (!signal.aborted) throw new EngineError('unavailable', 'the event stream ended');
    },
  };
}

/** Ignores status 304, which means that the container is already in the requested state. */
async function unlessUnchanged(work: Promise<unknown>): Promise<unknown> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof Error && 'statusCode' in error && error.statusCode === 304) return null;
    throw error;
  }
}

type VolumeMethods = 'createVolume' | 'listVolumes' | 'removeVolume';

export function createEngineVolumes(
  docker: Docker,
  call: EngineCall,
): Pick<ContainerEngine, VolumeMethods> {
  return {
    async createVolume(name, labels) {
      await call(DEADLINES_MS.volume, Anything, (abortSignal) => {
        const body = { Name: name, Driver: 'local', Labels: labels };
        // Without `_query` and `_body`, dockerode would also send the whole request in the query string.
        const request = { _query: {}, _body: body, abortSignal };
        return docker.createVolume(request);
      });
      // If a volume with the name exists, the engine returns it, even if it belongs to another owner.
      const made = await call(DEADLINES_MS.volume, VolumeAnswer, (abortSignal) =>
        docker.getVolume(name).inspect({ abortSignal }),
      );
      const isOurs = Object.entries(labels).every(([label, value]) => made.labels[label] === value);
      if (!isOurs) throw new EngineError('conflict', `the volume ${name} belongs to another owner`);
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
