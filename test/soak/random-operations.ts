/** Random operations on an agent and its engine, run one at a time. */
import { ApiError } from '#shared/runtime/errors.ts';
import { createSshKeyPair } from '#shared/signing/openssh-key.ts';
import { podSpec } from '../fakes/agents/test-agent.ts';
import type { World } from './random-world.ts';

type Operation = (world: World) => Promise<unknown>;

/** Error codes that the agent may return; any other error is a bug. */
const REFUSALS = new Set(['conflict', 'gpu_unavailable', 'pod_state_conflict', 'pod_not_found']);

const pick = <T>({ random }: World, all: readonly T[]): T | undefined =>
  all[random.int(Math.max(all.length, 1))];
const some = <T>({ random }: World, all: readonly T[]): T[] =>
  all.filter(() => random.int(3) === 0);

function specOf(world: World, generation: number) {
  const environment = { GENERATION: `${generation}` };
  const internal_ports = some(world, [22, 8000, 8888]);
  const gpu_uuids = some(world, world.gpus);
  const volumes = some(world, ['/data', '/work']);
  const content = { environment, internal_ports, gpu_uuids, volumes };
  return podSpec({ ...content, generation, stop_grace_seconds: 1 });
}

function slotOf(world: World): string {
  return pick(world, world.slots) ?? '';
}

async function put(world: World): Promise<void> {
  const id = slotOf(world);
  const spec = specOf(world, 1);
  await world.agent().client.putPod(id, spec);
  world.ids.add(id);
}

async function change(world: World): Promise<void> {
  const { client } = world.agent();
  const id = slotOf(world);
  const { generation } = await client.getPod(id);
  await client.putPod(id, specOf(world, generation + 1));
}

async function reboot(world: World): Promise<void> {
  const { client } = world.agent();
  const id = slotOf(world);
  await client.rebootPod(id, (await client.getPod(id)).reboots_requested + 1);
}

async function remove(world: World): Promise<void> {
  const slot = world.random.int(world.slots.length);
  const id = world.slots[slot] ?? '';
  await world.agent().client.deletePod(id);
  world.slots[slot] = world.random.uuid();
}

async function sshKeys(world: World): Promise<void> {
  const { publicKey } = createSshKeyPair(world.random, 'random');
  await world.agent().client.putSshKeys(slotOf(world), [publicKey]);
}

/** Returns a container of the agent, in any state. */
async function anyContainer(world: World): Promise<{ id: string; pod: string } | undefined> {
  const all = await world.objects('container');
  return pick(
    world,
    all.filter(({ executor }) => executor === world.executorId),
  );
}

async function killContainer(world: World): Promise<void> {
  const found = await anyContainer(world);
  if (found !== undefined) await world.docker('kill', found.id);
}

async function removeContainer(world: World): Promise<void> {
  const found = await anyContainer(world);
  if (found !== undefined) await world.docker('rm', '--force', found.id);
}

/** Removes a network, after stopping its container: the engine does not remove a network in use. */
async function removeNetwork(world: World): Promise<void> {
  const found = await anyContainer(world);
  if (found === undefined) return;
  const networks = await world.objects('network');
  await world.docker('kill', found.id);
  for (const { id, pod } of networks) {
    if (pod !== found.pod) continue;
    await world.docker('network', 'disconnect', '--force', id, found.id);
    await world.docker('network', 'rm', id);
  }
}

/** Kills the agent while it processes the last request and a further request. */
async function killAgent(world: World): Promise<void> {
  const request = pick(world, [put, change, reboot, remove])?.(world);
  const answered = request?.catch((error: unknown) => {
    const lost = error instanceof ApiError && error.code === 'upstream_unavailable';
    if (!lost && !isRefusal(error)) throw error;
  });
  await world.restartAgent('kill');
  await answered;
}

async function killEngine(world: World): Promise<void> {
  await world.own.kill();
  // The gateway accepts requests while the agent is down.
  await refusable(() => put(world));
  await world.own.start();
}

async function killBoth(world: World): Promise<void> {
  await world.own.kill();
  await world.restartAgent('kill');
  await world.own.start();
}

/** Relative frequency of each operation. */
const WEIGHTS: readonly (readonly [string, number, Operation])[] = [
  ['put', 26, put],
  ['change', 14, change],
  ['reboot', 14, reboot],
  ['remove', 12, remove],
  ['ssh keys', 10, sshKeys],
  ['kill container', 7, killContainer],
  ['remove container', 6, removeContainer],
  ['remove network', 3, removeNetwork],
  ['kill agent', 4, killAgent],
  ['restart agent', 2, (world) => world.restartAgent('stop')],
  ['kill engine', 1, killEngine],
  ['kill both', 1, killBoth],
];

/** Names and operations, one entry per unit of weight. */
const DRAW = WEIGHTS.flatMap(([name, weight, operation]) =>
  Array.from({ length: weight }, () => ({ name, operation })),
);

/** Runs one operation and returns its name; an error of `REFUSALS` counts as done. */
export async function actAtRandom(world: World): Promise<string> {
  const drawn = pick(world, DRAW);
  if (drawn === undefined) throw new Error('cannot choose from an empty list');
  await refusable(() => drawn.operation(world));
  return drawn.name;
}

async function refusable(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isRefusal(error)) throw error;
  }
}

function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && REFUSALS.has(error.code);
}
