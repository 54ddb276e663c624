/** Container engine in memory. test/contract runs one suite against it and against the real engine. */
import type { Clock } from '#shared/runtime/clock.ts';
import {
  type ContainerEngine,
  type ContainerSpec,
  type ContainerState,
  type ContainerUsage,
  EngineError,
  type VolumeState,
} from '../../../agent/containers/engine/engine.ts';
import { createContainerMethods } from './fake-engine-containers.ts';
import { createImageMethods, PLAIN } from './fake-engine-images.ts';
import { createNetworkMethods, createVolumeMethods } from './fake-engine-networks.ts';
import {
  createWorldActions,
  emptyWorld,
  eventStream,
  type FakeNetwork,
  type World,
} from './fake-engine-world.ts';

export type FakeEngine = ContainerEngine & {
  /**
   * Returns a second client of the same engine with its own hook. A test uses it after an agent was killed during a
   * call, because the first client's calls stay pending.
   */
  reconnect(): FakeEngine;
  /** Adds an image to the registry, or to the engine only when `digest` is null. */
  addImage(reference: string, digest: string | null): void;
  /** Ends a container as if its process had exited. */
  exit(idOrName: string, exitCode: number, oomKilled?: boolean): void;
  /** Reports that the kernel killed a process of the container because it was out of memory. */
  reportOom(idOrName: string): void;
  /** Removes a container without the agent, as another tool on the host would. */
  vanish(idOrName: string): void;
  /** While true every call fails with `unavailable` and the event streams end. */
  setAway(away: boolean): void;
  /** Removes the networks of a container by force, even while it runs. */
  loseNetwork(idOrName: string): void;
  /** Ends every container and event stream, as a restart of an engine without live restore does. */
  restart(): void;
  /** Sets the folder for volumes created from now on. */
  keepVolumesIn(folder: string): void;
  /** Host ports that a program outside the engine occupies. */
  readonly occupiedPorts: Set<number>;
  /** Bytes written to each container's layer, by container id. */
  readonly diskBytes: Map<string, number>;
  /** Usage of running containers by id; zero for others. */
  readonly usages: Map<string, ContainerUsage>;
  /** Runs before and after every call. Throw to fail the call; return a promise that never settles to hang it. */
  hook: (moment: 'before' | 'after', method: string, detail: string) => Promise<void>;
  readonly containers: ReadonlyMap<string, ContainerState & { spec: ContainerSpec }>;
  readonly networks: ReadonlyMap<string, FakeNetwork>;
  readonly volumes: ReadonlyMap<string, VolumeState>;
};

/** Runs one call of an engine method: the hook (`before`), the check for an outage, the work, the hook (`after`). */
export type FakeCall = <T>(
  method: string,
  detail: string,
  work: () => T | Promise<T>,
) => Promise<T>;

/** Creates an engine that is empty, or that shares the world of another fake. */
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
  const { newId, tick, get, emit, end, remove } = actions;

  async function call<T>(method: string, detail: string, work: () => T | Promise<T>): Promise<T> {
    await engine.hook('before', method, detail);
    if (world.away) throw new EngineError('unavailable', 'the fake engine is unavailable');
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
    reportOom: (idOrName) => emit(get(idOrName), 'oom'),
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
      if (world.away) throw new EngineError('unavailable', 'the fake engine is unavailable');
      onOpen?.();
      yield* eventStream(world, labels, signal);
    },
  };
  return engine;
}

function notFaked(method: string): never {
  throw new Error(`${method} is not faked`);
}

/**
 * Makes every call of `method` fail with `kind`, except calls for which `spared` returns true. Returns a function that
 * ends the fault.
 */
export function breakEngine(
  engine: FakeEngine,
  method: string,
  kind: EngineError['kind'],
  spared: (method: string, detail: string) => boolean = () => false,
): () => void {
  engine.hook = async (moment, called, detail) => {
    if (moment === 'before' && called === method && !spared(called, detail)) {
      throw new EngineError(kind, `broken ${method}`);
    }
  };
  return () => {
    engine.hook = async () => undefined;
  };
}

/** Blocks every call of `method`. Returns a function that releases them. */
export function holdEngine(engine: FakeEngine, method: string): () => void {
  const held: (() => void)[] = [];
  engine.hook = (moment, called) =>
    moment === 'before' && called === method
      ? new Promise<void>((resolve) => held.push(resolve))
      : Promise.resolve();
  return () => {
    engine.hook = async () => undefined;
    for (const release of held) release();
  };
}
