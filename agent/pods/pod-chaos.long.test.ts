/** Random requests, faults and kills. Checks that no lease is ever held twice, and that the agent converges. */
import { expect, it } from 'vitest';
import { PodSpec } from '#shared/api/agent/pod.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import type { Random } from '#shared/runtime/random.ts';
import { createTestAgent, fakeGpus, podSpec } from '../../test/fakes/agents/test-agent.ts';
import { createFakeEngine, type FakeEngine } from '../../test/fakes/engine/fake-engine.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { createSeededRandom } from '../../test/fakes/seeded-random.ts';
import type { Agent } from '../app.ts';
import { openDatabase } from '../database/database.ts';

const RUNS = 12;
const OPERATIONS = 80;
const PODS = 3;
const GPUS = Array.from({ length: 3 }, (_, n) => `GPU-00000000-0000-4000-8000-00000000000${n}`);
const PORTS = { first: 20_000, last: 20_011 };
const IMAGES: Record<string, string> = {
  'registry.example/one:1': `sha256:${'a1'.repeat(32)}`,
  'registry.example/two:1': `sha256:${'b2'.repeat(32)}`,
};
/** An image that does not exist: a first launch fails, and a change leaves the present container running. */
const MISSING = 'registry.example/missing:1';
/** Longer than any backoff. */
const LONG_MS = 400_000;
const STEP_MS = 10_000;
const MAX_LATENCY_MS = 400;

function createWorld(seed: number) {
  const random = createSeededRandom(seed);
  const clock = createManualClock();
  const database = openDatabase(':memory:');
  const first = createFakeEngine(clock);
  for (const [reference, digest] of Object.entries(IMAGES)) first.addImage(reference, digest);
  const executorId = random.uuid();
  /** Pods in use; removed ones stay in `ids`, to check for leftovers. */
  const slots = Array.from({ length: PODS }, () => random.uuid());
  const ids = [...slots];
  const gpus = { ...fakeGpus(GPUS), gpuMode: () => 'nvidia' as const };

  /** Calls take time, so that requests arrive in the middle of steps. */
  function boot(engine: FakeEngine): { agent: Agent; engine: FakeEngine } {
    engine.hook = () => clock.sleep(random.int(MAX_LATENCY_MS));
    const portRange = PORTS;
    const agent = createTestAgent({ engine, clock, random, database, executorId, gpus, portRange });
    agent.start();
    return { agent, engine };
  }
  return { random, clock, ids, slots, boot, first };
}

type World = ReturnType<typeof createWorld>;

const some = <T>(random: Random, all: readonly T[]): T[] => all.filter(() => random.int(2) === 0);

function randomSpec(random: Random, generation: number) {
  const references = [...Object.keys(IMAGES), ...(generation > 1 ? [MISSING] : [])];
  return podSpec({
    generation,
    image: { reference: references[random.int(references.length)] ?? '' },
    internal_ports: some(random, [22, 8000, 8888]),
    gpu_uuids: some(random, some(random, GPUS)),
  });
}

/** Runs `work` and ignores ApiErrors; any other error is a bug. */
async function tolerate(work: () => unknown): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  }
}

/**
 * Simulates kill -9 at the n-th call from now, before or after the call's effect: calls in progress never return. The
 * returned function is true once the kill has happened.
 */
function killAt(engine: FakeEngine, countdown: number): () => boolean {
  const { hook } = engine;
  let left = countdown;
  engine.hook = (...call) => {
    left -= 1;
    return left < 0 ? new Promise(() => undefined) : hook(...call);
  };
  return () => left < 0;
}

async function act(world: World, { agent, engine }: ReturnType<World['boot']>): Promise<void> {
  const { random, ids, slots } = world;
  const slot = random.int(slots.length);
  const id = slots[slot] ?? '';
  const containers = [...engine.containers.keys()];
  const container = containers[random.int(Math.max(containers.length, 1))];
  switch (random.int(9)) {
    case 0:
    case 1:
      return tolerate(() => agent.pods.put(id, PodSpec.parse(randomSpec(random, 1))));
    case 2:
      return tolerate(() => {
        const { generation } = agent.pods.get(id);
        return agent.pods.put(id, PodSpec.parse(randomSpec(random, generation + 1)));
      });
    case 3:
      return tolerate(() => agent.pods.reboot(id, agent.pods.get(id).reboots_requested + 1));
    case 4:
      if (random.int(3) > 0) return undefined;
      slots[slot] = random.uuid();
      ids.push(slots[slot]);
      // A DELETE of an unknown id queries the engine, and the clock does not advance at this point.
      void tolerate(() => agent.pods.remove(id));
      return undefined;
    case 5:
      if (container !== undefined) engine.exit(container, random.int(2), random.int(4) === 0);
      return undefined;
    case 6:
      if (container !== undefined && random.int(2) === 0) engine.vanish(container);
      return undefined;
    case 7:
      engine.setAway(random.int(5) === 0);
      return undefined;
    default:
      engine.occupiedPorts.clear();
      engine.occupiedPorts.add(PORTS.first + random.int(4));
      return undefined;
  }
}

function expectNoDoubleUse(engine: FakeEngine): void {
  const running = [...engine.containers.values()].filter(({ status }) => status === 'running');
  for (const list of [
    running.map(({ labels }) => labels['io.podwright.pod'] ?? ''),
    running.flatMap(({ spec }) => spec.gpuUuids),
    running.flatMap(({ spec }) => spec.ports.map(({ host }) => host)),
  ]) {
    expect(new Set<string | number>(list).size).toBe(list.length);
  }
}

async function passTime(world: World, totalMs: number): Promise<void> {
  for (let ms = 0; ms < totalMs; ms += STEP_MS) await world.clock.advance(STEP_MS);
}

function expectSettled(agent: Agent, engine: FakeEngine, ids: readonly string[]): void {
  for (const id of ids) {
    const found = [...engine.containers.values()].filter(
      ({ labels }) => labels['io.podwright.pod'] === id,
    );
    const view = viewOrNull(agent, id);
    if (view === null || view.phase === 'removed') {
      expect(found).toEqual([]);
      expect(agent.core.portLeases.portsOf(id)).toEqual([]);
      expect(agent.core.gpuLeases.uuidsOf(id)).toEqual([]);
      continue;
    }
    if (view.phase === 'failed') {
      expect(view).toMatchObject({ reason: 'ImageNotFound', image: { reference: MISSING } });
      expect(found).toEqual([]);
      continue;
    }
    expect(view).toMatchObject({ desired: 'running', phase: 'running', reason: null });
    if (view.change === null) expect(view.observed_generation).toBe(view.generation);
    else {
      expect(view.change).toMatchObject({ stage: 'failed', generation: view.generation });
      expect(view.observed_generation).toBeLessThan(view.generation);
    }
    expect(view.reboots_done).toBe(view.reboots_requested);
    expect(found).toMatchObject([{ id: view.container_id, status: 'running' }]);
    // The fake engine names images after their digests.
    expect(found[0]?.spec.image).toBe(IMAGES[view.image.reference]);
    expect(found[0]?.spec.gpuUuids.toSorted()).toEqual(view.gpu_uuids.toSorted());
    // The gateway listens on the SSH port.
    const { 22: _, ...published } = view.ports;
    expect(Object.fromEntries(found[0]?.spec.ports.map((p) => [p.internal, p.host]) ?? [])).toEqual(
      published,
    );
  }
  // A pod that failed before its launch may have no container.
  const alive = agent.pods.list();
  const launched = alive.filter(({ phase }) => phase === 'running').length;
  expect(engine.networks.size).toBeGreaterThanOrEqual(launched);
  expect(engine.networks.size).toBeLessThanOrEqual(alive.length);
}

function viewOrNull(agent: Agent, id: string) {
  try {
    return agent.pods.get(id);
  } catch (error) {
    if (error instanceof ApiError) return null;
    throw error;
  }
}

it.each(Array.from({ length: RUNS }, (_, run) => run + 1))('converges, seed %i', async (seed) => {
  const world = createWorld(seed);
  let host = world.boot(world.first);
  let isDead = () => false;

  /** Replaces the agent process by a new one that finds the state that the killed one left. */
  function replaceHost(): void {
    killAt(host.engine, 0);
    void host.agent.stop();
    host = world.boot(host.engine.reconnect());
    isDead = () => false;
  }

  for (let count = 0; count < OPERATIONS; count += 1) {
    if (world.random.int(10) === 0) isDead = killAt(host.engine, world.random.int(12));
    await act(world, host);
    // The next request often arrives while the last one is still in progress.
    await world.clock.advance(world.random.int(world.random.int(2) === 0 ? 3_000 : MAX_LATENCY_MS));
    expectNoDoubleUse(host.engine);
    if (isDead()) replaceHost();
  }
  replaceHost();
  const last = host;
  last.engine.setAway(false);
  last.engine.occupiedPorts.clear();
  await passTime(world, LONG_MS);
  expectNoDoubleUse(last.engine);
  expectSettled(last.agent, last.engine, world.ids);
  // A list call may still be in progress, and the clock does not advance any more.
  void last.agent.stop();
});
