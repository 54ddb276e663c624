/** Invariants that hold after every random operation, and conditions that must hold soon afterwards. */
import assert from 'node:assert/strict';
import type { PodView } from '#shared/api/agent/pod.ts';
import { eventually } from '../fakes/eventually.ts';
import type { EngineObject, ObjectKind, World } from './random-world.ts';

/**
 * Time limit for settling. Several operations may wait for the same pod, and each stop of a container takes a second.
 */
const SETTLES_WITHIN_MS = 20_000;

/** Creates objects of another owner, which must never change. */
export async function plantForeign(world: World): Promise<EngineObject[]> {
  const create = ['create', '--label', 'io.podwright.managed=1'];
  const label = ['--label', 'io.podwright.executor=somebody-else'];
  await world.docker(...create, ...label, 'podwright.local/base:1', 'true');
  await world.docker('create', 'podwright.local/base:1', 'true');
  await world.docker('network', ...create, ...label, 'neighbour');
  await world.docker('volume', ...create, ...label, 'neighbour');
  return foreignOf(world, [
    ...(await world.objects('container')),
    ...(await world.objects('network')),
    ...(await world.objects('volume')),
  ]);
}

function foreignOf({ executorId }: World, objects: readonly EngineObject[]): EngineObject[] {
  return objects.filter(({ executor }) => executor !== executorId);
}

/** Throws when a pod runs twice, a lease is held twice, or an object of another owner changed. */
export async function assertAlways(world: World, foreign: readonly EngineObject[]): Promise<void> {
  const [views, containers, networks, volumes] = await Promise.all([
    world.views(),
    world.objects('container'),
    world.objects('network'),
    world.objects('volume'),
  ]);
  assert.deepEqual(foreignOf(world, [...containers, ...networks, ...volumes]), foreign);
  const running = containers.filter(({ state, pod }) => state === 'running' && pod !== '');
  assertUnique(
    'pods that run',
    running.map(({ pod }) => pod),
  );
  assertUnique(
    'ports',
    views.flatMap(({ ports }) => Object.values(ports)),
  );
  assertUnique(
    'GPUs',
    views.flatMap(({ gpu_uuids }) => gpu_uuids),
  );
}

function assertUnique(what: string, values: readonly unknown[]): void {
  assert.equal(new Set(values).size, values.length, `${what}: ${values.join(', ')}`);
}

/** Waits until every pod has its requested state and no object of other pods is left. */
export async function assertSettles(world: World): Promise<void> {
  let problem = '';
  const settled = async () => {
    problem = (await unsettled(world)) ?? '';
    return problem === '';
  };
  await eventually('settled', settled, SETTLES_WITHIN_MS).catch(() => {
    throw new Error(`does not settle: ${problem}`);
  });
}

async function unsettled(world: World): Promise<string | null> {
  const views = await world.views();
  const odd = views.find((view) => !isSettled(view));
  if (odd !== undefined) return JSON.stringify(odd);
  for (const id of world.ids) {
    const known = views.some((view) => view.id === id);
    if (known !== world.slots.includes(id)) return `${id} is ${known ? 'not removed' : 'missing'}`;
  }
  const oursOf = async (kind: ObjectKind) =>
    (await world.objects(kind)).filter(({ executor }) => executor === world.executorId);
  const [container, network, volume] = await Promise.all([
    oursOf('container'),
    oursOf('network'),
    oursOf('volume'),
  ]);
  const found = { container, network };
  const wanted = (kind: 'container' | 'network') =>
    views
      .filter((view) => kind === 'network' || view.container_id !== null)
      .map(({ id }) => id)
      .toSorted();
  for (const kind of ['container', 'network'] as const) {
    const there = found[kind].map(({ pod }) => pod).toSorted();
    // Another container may have taken the network of a pod in backoff; the pod's next start creates it again.
    const isMissing = (id: string) => !there.includes(id) && !isWaiting(views, id);
    if (new Set(there).size !== there.length || wanted(kind).some(isMissing)) {
      return `${kind}s of ${there}, wanted ${wanted(kind)}`;
    }
    if (there.some((id) => !views.some((view) => view.id === id))) return `${kind}s left: ${there}`;
  }
  const left = volume.filter(({ pod }) => !views.some((view) => view.id === pod));
  return left.length === 0 ? null : `volumes left: ${left.map(({ id }) => id)}`;
}

/** Returns true for a pod that runs, or is in backoff with a time for the next attempt. */
function isSettled(view: PodView): boolean {
  if (view.desired !== 'running') return false;
  if (view.reboots_done !== view.reboots_requested) return false;
  if (view.phase === 'backoff') return view.next_retry_ms !== null;
  // A failed change must have restored the old generation.
  const isChanged = view.change === null && view.observed_generation === view.generation;
  const isRolledBack = view.change?.stage === 'failed';
  return view.phase === 'running' && view.reason === null && (isChanged || isRolledBack);
}

function isWaiting(views: readonly PodView[], id: string): boolean {
  return views.some((view) => view.id === id && view.phase === 'backoff');
}

/** Waits until every pod runs, rebooting those in backoff; then removes them and checks that nothing is left. */
export async function assertEnds(world: World): Promise<void> {
  const { client } = world.agent();
  for (const view of await world.views()) {
    if (view.phase === 'backoff') await client.rebootPod(view.id, view.reboots_requested + 1);
  }
  await eventually(
    'every pod runs',
    async () => (await world.views()).every(({ phase, reason }) => phase === 'running' && !reason),
    SETTLES_WITHIN_MS,
  );
  await assertSettles(world);
  for (const { id } of await world.views()) await client.deletePod(id);
  world.slots.splice(0);
  await assertSettles(world);
  const { gpu, orphans } = await client.inventory();
  assert.deepEqual(
    gpu.devices.filter(({ leased_by }) => leased_by !== null),
    [],
  );
  assert.deepEqual(orphans, []);
}
