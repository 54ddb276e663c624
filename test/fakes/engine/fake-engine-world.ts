/** State of the engine in memory, and changes to its containers that no API call causes. */
import type { Clock } from '#shared/runtime/clock.ts';
import {
  type ContainerSpec,
  type ContainerState,
  type ContainerUsage,
  EngineError,
  type EngineEvent,
  type ImageState,
  type NetworkPlace,
  type VolumeState,
} from '../../../agent/containers/engine/engine.ts';

export type FakeNetwork = {
  id: string;
  name: string;
  labels: Record<string, string>;
  place: NetworkPlace;
  createdMs: number;
};
export type FakeContainer = ContainerState & { spec: ContainerSpec };

/** Milliseconds added to the time of each start, so that no two starts have the same timestamp, as on a real engine. */
const START_STEP_MS = 1;

export type World = ReturnType<typeof emptyWorld>;

/** State of a newly installed engine. */
export function emptyWorld() {
  return {
    containers: new Map<string, FakeContainer>(),
    networks: new Map<string, FakeNetwork>(),
    volumes: new Map<string, VolumeState>(),
    images: new Map<string, ImageState>(),
    registry: new Map<string, string>(),
    /** Labels of images that the engine built, by image id. */
    built: new Map<string, Record<string, string>>(),
    occupiedPorts: new Set<number>(),
    diskBytes: new Map<string, number>(),
    usages: new Map<string, ContainerUsage>(),
    streams: new Set<(event: EngineEvent | null) => void>(),
    exits: new Map<string, (() => void)[]>(),
    volumeFolder: '/var/lib/docker/volumes',
    away: false,
    startedMs: 0,
    serial: 0,
    lastTimeMs: 0,
  };
}

export type WorldActions = ReturnType<typeof createWorldActions>;

/** Returns the actions on a world. Several engines may share one world. */
export function createWorldActions(world: World, clock: Clock) {
  const { containers, networks, occupiedPorts, streams, exits } = world;

  function newId(): string {
    world.serial += 1;
    return world.serial.toString(16).padStart(64, '0');
  }

  function tick(): number {
    world.lastTimeMs = Math.max(clock.now(), world.lastTimeMs + START_STEP_MS);
    return world.lastTimeMs;
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

  return { newId, tick, find, get, emit, end, remove, start };
}

/** Returns true if `given` contains all labels in `wanted`. */
export function hasLabels(given: Record<string, string>, wanted: Record<string, string>): boolean {
  return Object.entries(wanted).every(([name, value]) => given[name] === value);
}

/** Yields events until `signal` aborts. Throws when the engine becomes unavailable. */
export async function* eventStream(
  { streams, containers }: World,
  labels: Record<string, string>,
  signal: AbortSignal,
): AsyncGenerator<EngineEvent> {
  const queue: (EngineEvent | null)[] = [];
  let wake = () => {};
  const push = (event: EngineEvent | null) => {
    const container = event === null ? undefined : containers.get(event.containerId);
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
