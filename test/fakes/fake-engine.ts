/** A container engine in memory, held to the same contract as the real one by test/contract. */
import { NO_PROGRESS } from '#shared/agent-api/pull-progress.ts';
import type { Clock } from '#shared/clock.ts';
import {
  type ContainerEngine,
  type ContainerSpec,
  type ContainerState,
  type ContainerUsage,
  EngineError,
  type EngineEvent,
  type ImageState,
  type NetworkPlace,
} from '../../agent/docker/engine.ts';

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
};

type FakeNetwork = {
  id: string;
  name: string;
  labels: Record<string, string>;
  place: NetworkPlace;
  createdMs: number;
};
type FakeContainer = ContainerState & { spec: ContainerSpec };

const IDLE: ContainerUsage = { cpuNanos: 0, memoryBytes: 0 };
const PLAIN = { sizeBytes: 1, onBuild: [] };
/** Two starts never share a time stamp, as on a real engine. */
const START_STEP_MS = 1;

type World = ReturnType<typeof emptyWorld>;

function emptyWorld() {
  return {
    containers: new Map<string, FakeContainer>(),
    networks: new Map<string, FakeNetwork>(),
    images: new Map<string, ImageState>(),
    registry: new Map<string, string>(),
    /** Images built here, by id: their labels. */
    built: new Map<string, Record<string, string>>(),
    occupiedPorts: new Set<number>(),
    diskBytes: new Map<string, number>(),
    usages: new Map<string, ContainerUsage>(),
    streams: new Set<(event: EngineEvent | null) => void>(),
    exits: new Map<string, (() => void)[]>(),
    away: false,
    startedMs: 0,
    serial: 0,
    lastTimeMs: 0,
  };
}

/** Starts empty, unless it is given the world of another. */
export function createFakeEngine(clock: Clock, world: World = emptyWorld()): FakeEngine {
  const { containers, networks, images, registry, occupiedPorts, diskBytes } = world;
  const { streams, exits, built, usages } = world;

  function newId(): string {
    world.serial += 1;
    return world.serial.toString(16).padStart(64, '0');
  }

  function tick(): number {
    world.lastTimeMs = Math.max(clock.now(), world.lastTimeMs + START_STEP_MS);
    return world.lastTimeMs;
  }

  /** Every call passes here: the hook before and after, and the outage. */
  async function call<T>(method: string, detail: string, work: () => T | Promise<T>): Promise<T> {
    await engine.hook('before', method, detail);
    if (world.away) throw new EngineError('unavailable', 'the fake engine is away');
    const result = await work();
    await engine.hook('after', method, detail);
    return result;
  }

  function find(idOrName: string): FakeContainer | undefined {
    return (
      containers.get(idOrName) ?? [...containers.values()].find(({ name }) => name === idOrName)
    );
  }

  function get(idOrName: string): FakeContainer {
    const found = find(idOrName);
    if (found === undefined) throw new EngineError('not_found', `no container ${idOrName}`);
    return found;
  }

  function emit(container: FakeContainer, action: string): void {
    const podId = container.labels['io.podwright.pod'] ?? '';
    const event = { podId, containerId: container.id, action, timeMs: clock.now() };
    for (const push of streams) push(event);
  }

  function end(container: FakeContainer, exitCode: number, oomKilled: boolean): void {
    if (container.status !== 'running') return;
    Object.assign(container, { status: 'exited', exitCode, oomKilled, finishedMs: tick() });
    emit(container, 'die');
    for (const wake of exits.get(container.id) ?? []) wake();
    exits.delete(container.id);
  }

  function remove(container: FakeContainer): void {
    end(container, 137, false);
    containers.delete(container.id);
    emit(container, 'destroy');
  }

  function portsInUse(except: string): Set<number> {
    const published = [...containers.values()]
      .filter(({ id, status }) => status === 'running' && id !== except)
      .flatMap(({ spec }) => spec.ports.map(({ host }) => host));
    return new Set([...published, ...occupiedPorts]);
  }

  function start(container: FakeContainer): void {
    if (container.status === 'running') return;
    const { network, ports } = container.spec;
    if (network !== null && !networks.has(network)) {
      throw new EngineError('not_found', `network ${network} not found`);
    }
    const inUse = portsInUse(container.id);
    const busy = ports.find(({ host }) => inUse.has(host));
    if (busy !== undefined) {
      const startError = `Bind for 0.0.0.0:${busy.host} failed: port is already allocated`;
      Object.assign(container, { startError, exitCode: 128 });
      throw new EngineError('port_busy', startError);
    }
    const startedMs = tick();
    container.networks = network === null ? [] : [network];
    Object.assign(container, { status: 'running', startedMs, startError: '', exitCode: 0 });
    emit(container, 'start');
  }

  function pull(reference: string): void {
    const [name = '', wanted] = reference.split('@');
    const entry = [...registry].find(([tagged, digest]) =>
      wanted === undefined
        ? tagged === reference
        : repositoryOf(tagged) === name && digest === wanted,
    );
    if (entry === undefined) throw new EngineError('image_not_found', `no image ${reference}`);
    const [tagged, digest] = entry;
    const repoDigest = `${repositoryOf(tagged)}@${digest}`;
    const image = { id: `sha256:${digest.slice(7)}`, repoDigests: [repoDigest], ...PLAIN };
    images.set(reference, image);
    images.set(repoDigest, image);
  }

  const engine: FakeEngine = {
    containers,
    networks,
    occupiedPorts,
    diskBytes,
    usages,
    hook: async () => undefined,
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
    startedMs: () => call('startedMs', '', () => world.startedMs),
    inspectImage: (reference) =>
      call(
        'inspectImage',
        reference,
        () =>
          images.get(reference) ?? [...images.values()].find(({ id }) => id === reference) ?? null,
      ),
    resolveDigest: (reference) =>
      call('resolveDigest', reference, () => {
        const digest = reference.split('@')[1] ?? registry.get(reference);
        if (digest === undefined) throw new EngineError('image_not_found', `no image ${reference}`);
        return digest;
      }),
    pullImage: (reference, { onProgress }, signal) =>
      call('pullImage', reference, () => {
        if (signal.aborted) throw new EngineError('deadline', 'the pull was ended');
        onProgress({ ...NO_PROGRESS, layers_total: 1, bytes_total: 1 });
        pull(reference);
        onProgress({
          ...NO_PROGRESS,
          layers_done: 1,
          layers_total: 1,
          bytes_done: 1,
          bytes_total: 1,
        });
      }),
    listImages: ({ labels = {}, unused = false }) =>
      call('listImages', '', () => {
        const named = new Set([...images.values()].map(({ id }) => id));
        const ids = [...built].filter(([, own]) => hasLabels(own, labels)).map(([id]) => id);
        return ids.filter((id) => !unused || !named.has(id));
      }),
    removeImage: (reference) =>
      call('removeImage', reference, () => {
        const image = images.get(reference);
        const id = image?.id ?? reference;
        const isUsed = [...containers.values()].some(({ imageId }) => imageId === id);
        const others = [...images].some(
          ([name, { id: other }]) => name !== reference && other === id,
        );
        if (isUsed && !others) throw new EngineError('conflict', `image ${reference} is in use`);
        images.delete(reference);
        if (!others) built.delete(id);
      }),
    buildImage: ({ context, reference }, onOutput, signal) =>
      call('buildImage', reference, async () => {
        if (signal.aborted) throw new EngineError('deadline', 'the build was ended');
        let text = '';
        for await (const chunk of context) text += Buffer.from(chunk).toString('utf8');
        onOutput('Step 1/1 : FROM scratch\n');
        // A shell's way to fail, as far as it goes here.
        if (/^RUN exit [1-9]/m.test(text))
          throw new EngineError('build', 'returned a non-zero code');
        const labels = [...text.matchAll(/(\S+)="([^"]*)"/g)].map(([, name, value]) => [
          name,
          value,
        ]);
        const id = `sha256:${newId()}`;
        built.set(id, Object.fromEntries(labels));
        images.set(reference, { ...PLAIN, id, repoDigests: [] });
        return id;
      }),
    importImage: (tar, reference) =>
      call('importImage', reference, async () => {
        let sizeBytes = 0;
        for await (const chunk of tar) sizeBytes += chunk.length;
        images.set(reference, { ...PLAIN, id: `sha256:${newId()}`, repoDigests: [], sizeBytes });
      }),

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
        const never = {
          exitCode: 0,
          oomKilled: false,
          startError: '',
          startedMs: 0,
          finishedMs: 0,
        };
        containers.set(id, {
          ...{ ...never, id, name, labels, spec },
          status: 'created',
          imageId: image.id,
          createdMs: clock.now(),
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
    containerUsage: (id) =>
      call('containerUsage', id, () => {
        const found = find(id);
        return found?.status === 'running' ? (usages.get(found.id) ?? IDLE) : null;
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
            if (signal.aborted) throw new EngineError('deadline', 'the wait was ended');
            const ended = () => reject(new EngineError('deadline', 'the wait was ended'));
            signal.addEventListener('abort', ended, { once: true });
          });
        }
        return container.exitCode;
      }),
    containerLogs: () => notFaked('containerLogs'),
    async *events(labels, signal, onOpen) {
      if (world.away) throw new EngineError('unavailable', 'the fake engine is away');
      onOpen?.();
      yield* eventStream(streams, labels, signal, (id) => containers.get(id));
    },
  };
  return engine;
}

async function* eventStream(
  streams: Set<(event: EngineEvent | null) => void>,
  labels: Record<string, string>,
  signal: AbortSignal,
  containerOf: (id: string) => FakeContainer | undefined,
): AsyncGenerator<EngineEvent> {
  const queue: (EngineEvent | null)[] = [];
  let wake = () => {};
  const push = (event: EngineEvent | null) => {
    const container = event === null ? undefined : containerOf(event.containerId);
    if (container !== undefined && !hasLabels(container.labels, labels)) return;
    queue.push(event);
    wake();
  };
  streams.add(push);
  signal.addEventListener('abort', () => wake(), { once: true });
  try {
    while (!signal.aborted) {
      const next = queue.shift();
      if (next === null) throw new EngineError('unavailable', 'the event stream ended');
      if (next !== undefined) yield next;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    streams.delete(push);
  }
}

function notFaked(method: string): never {
  throw new Error(`${method} is not faked`);
}

function hasLabels(given: Record<string, string>, wanted: Record<string, string>): boolean {
  return Object.entries(wanted).every(([name, value]) => given[name] === value);
}

function repositoryOf(tagged: string): string {
  return tagged.slice(0, tagged.lastIndexOf(':'));
}
