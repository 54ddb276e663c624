/** A container engine in memory, held to the same contract as the real one by test/contract. */
import type { Clock } from '#shared/runtime/clock.ts';
import {
  type ContainerEngine,
  type ContainerSpec,
  type ContainerState,
  type ContainerUsage,
  EngineError,
  type VolumeState,
} from '../../agent/containers/engine/engine.ts';
import { createContainerMethods } from './fake-engine-containers.ts';
import { eventStream } from './fake-engine-events.ts';
import { createImageMethods, PLAIN } from './fake-engine-images.ts';
import { createNetworkMethods } from './fake-engine-networks.ts';
import { createVolumeMethods } from './fake-engine-volumes.ts';
import {
  createWorldActions,
  emptyWorld,
  type FakeNetwork,
  type World,
} from './fake-engine-world.ts';

export type FakeEngine = ContainerEngine & {
  /** Another client of the same engine, with a hook of its own: an agent that was killed leaves its hanging. */
  reconnect(): FakeEngine;
  /** Makes an image pullable; `digest` null stands for one that is only there locally. */
  addImage(reference: string, digest: string | null): void;
  /** Ends a container as if by itself. */
  exit(idOrName: string, exitCode: number, oomKilled?: boolean): void;
  /** Removes a container as another tool on the host would. */
  vanish(idOrName: string): void;
  /** While true every call fails with `unavailable` and the event streams end. */
  setAway(away: boolean): void;
  /** Takes a network away, by force, from a container that may be running. */
  loseNetwork(idOrName: string): void;
  /** Ends every container, as an engine does that comes back without live restore; the streams end too. */
  restart(): void;
  /** Where volumes lie that are made from now on. */
  keepVolumesIn(folder: string): void;
  /** Host ports that something outside the engine listens on. */
  readonly occupiedPorts: Set<number>;
  /** What containers have written, by id. */
  readonly diskBytes: Map<string, number>;
  /** What running containers use, by id; nothing unless told. */
  readonly usages: Map<string, ContainerUsage>;
  /** Runs around every call: throw to fail it, never settle to hang it. */
  hook: (moment: 'before' | 'after', method: string, detail: string) => Promise<void>;
  readonly containers: ReadonlyMap<string, ContainerState & { spec: ContainerSpec }>;
  readonly networks: ReadonlyMap<string, FakeNetwork>;
  readonly volumes: ReadonlyMap<string, VolumeState>;
};

/** Every call of a method passes through it. */
export type FakeCall = <T>(
  method: string,
  detail: string,
  work: () => T | Promise<T>,
) => Promise<T>;

/** Starts empty, unless it is given the world of another. */
export function createFakeEngine(clock: Clock, world: World = emptyWorld()): FakeEngine {
  const {
    containers,
    networks,
    volumes,
    images,
    registry,
    occupiedPorts,
    diskBytes,
    usages,
    streams,
  } = world;
  const actions = createWorldActions(world, clock);
  const { newId, tick, get, end, remove } = actions;

  /** Every call passes here: the hook before and after, and the outage. */
  async function call<T>(method: string, detail: string, work: () => T | Promise<T>): Promise<T> {
    await engine.hook('before', method, detail);
    if (world.away) throw new EngineError('unavailable', 'the fake engine is away');
    const result = await work();
    await engine.hook('after', method, detail);
    return result;
  }

  const engine: FakeEngine = {
    containers,
    networks,
    volumes,
    occupiedPorts,
    diskBytes,
    usages,
    hook: async () => undefined,
    keepVolumesIn(folder) {
      world.volumeFolder = folder;
    },
    reconnect: () => createFakeEngine(clock, world),
    addImage(reference, digest) {
      if (digest !== null) registry.set(reference, digest);
      else images.set(reference, { id: `sha256:${newId()}`, repoDigests: [], ...PLAIN });
    },
    exit: (idOrName, exitCode, oomKilled = false) => end(get(idOrName), exitCode, oomKilled),
    vanish: (idOrName) => remove(get(idOrName)),
    setAway(next) {
      world.away = next;
      if (next) for (const push of streams) push(null);
    },

    loseNetwork(idOrName) {
      const container = get(idOrName);
      for (const name of container.networks) networks.delete(name);
      container.networks = [];
    },
    restart() {
      for (const push of streams) push(null);
      for (const container of containers.values()) end(container, 137, false);
      world.startedMs = tick();
    },

    ping: () => call('ping', '', () => undefined),
    info: () =>
      call('info', '', () => ({
        version: 'fake',
        storageDriver: 'fake',
        cgroupVersion: '2',
        runtimes: ['runc'],
        rootDir: '/var/lib/docker',
        seccomp: true,
      })),
    engineDiskBytes: () => notFaked('engineDiskBytes'),
    startedMs: () => call('startedMs', '', () => world.startedMs),
    ...createImageMethods(world, actions, call),
    ...createNetworkMethods(world, actions, call, clock),
    ...createVolumeMethods(world, call, clock),
    ...createContainerMethods(world, actions, call, clock),
    containerLogs: () => notFaked('containerLogs'),
    async *events(labels, signal, onOpen) {
      if (world.away) throw new EngineError('unavailable', 'the fake engine is away');
      onOpen?.();
      yield* eventStream(world, labels, signal);
    },
  };
  return engine;
}

function notFaked(method: string): never {
  throw new Error(`${method} is not faked`);
}
