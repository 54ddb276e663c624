/** Checks that containers, leases, volumes, backups, events and access agree when chaos has ended. */
import { connect } from 'node:net';
import { systemClock } from '#shared/runtime/clock.ts';
import { LABELS } from '../../agent/containers/engine/engine.ts';
import type { Database } from '../../validator/central/platform/database/tables.ts';
import { eventually } from '../fakes/eventually.ts';
import type { EventFollower } from './chaos-events.ts';
import type { ChaosBackup, ChaosPod, ChaosRenters } from './chaos-operations.ts';
import type { ChaosWorld } from './chaos-world.ts';

/**
 * Time limit for pods and operations to come to rest: several times the silence after which an operation fails, and
 * several times the time limit of a launch.
 */
const SETTLES_WITHIN_MS = 900_000;
/** Time limit for agreement between database and hosts: longer than the central API needs to read every agent again. */
const AGREES_WITHIN_MS = 120_000;
const POLL_MS = 2_000;
/** States in which a pod remains without a request. */
const AT_REST = ['running', 'reboot_failed', 'failed', 'broken', 'stopped', 'creation_failed'];
const BANNER_WITHIN_MS = 15_000;
const RESTORE_ATTEMPTS = 12;
const RESTORE_PAUSE_MS = 10_000;
const FOLLOWED_WITHIN_MS = 60_000;

/** Violations by the kind of thing that should agree, such as containers or leases. */
export type Losses = Record<string, string[]>;

/** Waits until no pod changes and no operation is open. Returns the pods and operations that do not come to rest. */
export async function settle(db: Database): Promise<string[]> {
  let unsettled: string[] = [];
  const look = async () => {
    await systemClock.sleep(POLL_MS);
    unsettled = await unsettledIn(db);
    return unsettled.length === 0;
  };
  await eventually('rest', look, SETTLES_WITHIN_MS).catch(() => undefined);
  return unsettled;
}

async function unsettledIn(db: Database): Promise<string[]> {
  const pods = await db
    .selectFrom('pods')
    .select(['id', 'state', 'phase', 'message'])
    .where('ended_at', 'is', null)
    .execute();
  const moving = pods.filter(({ state }) => !AT_REST.includes(state));
  const open = [];
  for (const table of ['backup_logs', 'restore_logs'] as const) {
    const rows = await db.selectFrom(table).select(['id', 'state', 'error_message']).execute();
    open.push(...rows.filter(({ state }) => state === 'PENDING' || state === 'IN_PROGRESS'));
  }
  return [...moving, ...open].map((row) => JSON.stringify(row));
}

/** Returns the differences between the pods in the database and the hosts that remain for two minutes. */
export async function compareHosts(world: ChaosWorld, db: Database): Promise<Losses> {
  let losses: Losses = {};
  const look = async () => {
    await systemClock.sleep(POLL_MS);
    losses = await lookAtHosts(world, db);
    return Object.values(losses).every((each) => each.length === 0);
  };
  await eventually('agreement', look, AGREES_WITHIN_MS).catch(() => undefined);
  return losses;
}

/** Compares the pods in the database with the engine's containers and volumes, the leases, and the SSH ports. */
async function lookAtHosts(world: ChaosWorld, db: Database): Promise<Losses> {
  const { engine, nodes } = world;
  const all = await db.selectFrom('pods').selectAll().execute();
  const pods = all.filter(({ ended_at: endedMs }) => endedMs === null);
  // Pods of the validator's rental probes are in no table.
  const ended = new Set(all.filter((pod) => !pods.includes(pod)).map(({ id }) => id));
  const podOf = ({ labels }: { labels: Record<string, string> }) => labels[LABELS.pod] ?? '';
  const containers = await engine.listContainers({ [LABELS.managed]: '1' });
  const ofPods = containers.filter((each) => podOf(each) !== '');
  const running = ofPods.filter(({ status }) => status === 'running').map(podOf);
  const losses: Losses = { containers: [], broken: [], leases: [], volumes: [], access: [] };
  for (const { id, state, message } of pods) {
    const count = running.filter((pod) => pod === id).length;
    if (state === 'broken' && count > 0) losses['broken']?.push(`${id} runs: ${message}`);
    if (state === 'running' ? count !== 1 : count > 1) {
      losses['containers']?.push(`${id} is ${state} and has ${count} running containers`);
    }
  }
  for (const each of ofPods) {
    if (ended.has(podOf(each))) losses['containers']?.push(`${each.id} of ended ${podOf(each)}`);
  }
  for (const { name, labels } of await engine.listVolumes({ [LABELS.managed]: '1' })) {
    const pod = labels[LABELS.pod];
    if (pod !== undefined && ended.has(pod)) losses['volumes']?.push(`${name} of ended ${pod}`);
  }
  const leased = new Set<string>();
  for (const node of nodes) {
    const { gpu } = await world.inventoryOf(node);
    for (const { leased_by: pod } of gpu.devices) {
      if (pod === null) continue;
      leased.add(pod);
      if (ended.has(pod)) losses['leases']?.push(`GPU of ${node.id} leased by ended ${pod}`);
    }
  }
  const slots = await db.selectFrom('gpu_slots').selectAll().execute();
  for (const { pod_id: pod, executor_id: node } of slots) {
    if (pod !== null && ended.has(pod)) losses['leases']?.push(`slot of ${node} with ended ${pod}`);
  }
  for (const { id, state, ports_json: ports } of pods) {
    if (state !== 'running') continue;
    if (!leased.has(id)) losses['leases']?.push(`running ${id} leases no GPU`);
    const port = Number((JSON.parse(ports) as Record<string, number>)['22']);
    if (!(await answersSsh(port))) losses['access']?.push(`${id}: no SSH server at ${port}`);
  }
  return losses;
}

function answersSsh(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: '127.0.0.1', port, timeout: BANNER_WITHIN_MS });
    const end = (isSsh: boolean) => {
      socket.destroy();
      resolve(isSsh);
    };
    socket.once('data', (chunk: Buffer) => end(chunk.toString().startsWith('SSH-2.0-')));
    socket.once('error', () => end(false));
    socket.once('timeout', () => end(false));
  });
}

/** Restores every completed backup into a running pod of its account and compares all files. */
export async function restoreAll(
  world: ChaosWorld,
  renters: ChaosRenters,
  db: Database,
): Promise<string[]> {
  const losses: string[] = [];
  const { backups } = renters.records;
  for (const account of world.accounts) {
    const own = backups.filter((backup) => backup.account === account);
    if (own.length === 0) continue;
    const pod = await runningPodOf(world, renters, db, own[0]);
    if (pod === null) losses.push(`${own.length} backups: ${account.email} could not rent a pod`);
    for (const backup of pod === null ? [] : own) {
      const row = await db
        .selectFrom('backup_logs')
        .select(['state', 'error_message'])
        .where('id', '=', backup.id)
        .executeTakeFirst();
      if (row?.state !== 'COMPLETED') {
        losses.push(`${backup.id} was COMPLETED and is ${row?.state}`);
        continue;
      }
      const state = await restoreWhenFree(renters, pod as ChaosPod, backup);
      if (state !== 'COMPLETED') losses.push(`restore of ${backup.id}: ${state ?? 'refused'}`);
    }
    if (pod !== null) await renters.remove(pod);
  }
  return losses;
}

/** Repeats a request that was refused, because the cleanup of a repository refuses restores for a while. */
async function restoreWhenFree(
  renters: ChaosRenters,
  pod: ChaosPod,
  backup: ChaosBackup,
): ReturnType<ChaosRenters['restore']> {
  for (let attempt = 1; ; attempt += 1) {
    const state = await renters.restore(pod, backup);
    if (state !== null || attempt === RESTORE_ATTEMPTS) return state;
    await systemClock.sleep(RESTORE_PAUSE_MS);
  }
}

async function runningPodOf(
  world: ChaosWorld,
  renters: ChaosRenters,
  db: Database,
  backup: ChaosBackup | undefined,
): Promise<ChaosPod | null> {
  const running = async (id: string) => {
    const row = db.selectFrom('pods').select('state').where('id', '=', id);
    return (await row.executeTakeFirst())?.state === 'running';
  };
  const own = renters.livePods().filter(({ account }) => account === backup?.account);
  for (const pod of own) if (await running(pod.id)) return pod;
  if (backup === undefined) return null;
  // Pods of other accounts, and pods that failed, may use all nodes.
  for (const pod of renters.livePods()) await renters.remove(pod);
  const rented = await eventually(
    'a rental',
    async () => {
      await systemClock.sleep(POLL_MS);
      for (const { id } of world.nodes) {
        const pod = await renters.rent(backup.account, id);
        if (pod !== null) return pod;
      }
      return null;
    },
    SETTLES_WITHIN_MS,
  ).catch(() => null);
  if (rented === null) return null;
  return eventually('a running pod', () => running(rented.id), SETTLES_WITHIN_MS).then(
    () => rented,
    () => null,
  );
}

/** Compares the events that each follower has received with those that are stored for its account. */
export async function compareEvents(
  world: ChaosWorld,
  db: Database,
  followers: readonly EventFollower[],
): Promise<string[]> {
  const losses: string[] = [];
  for (const [index, follower] of followers.entries()) {
    const { id, email } = world.accounts[index] ?? { id: '', email: '' };
    const rows = await db
      .selectFrom('events')
      .select('id')
      .where('account_id', '=', id)
      .orderBy('feed_no')
      .execute();
    // The stream begins with the first event after the follower has connected.
    const first = rows.findIndex((row) => row.id === follower.received[0]);
    const stored = new Set(rows.slice(Math.max(first, 0)).map((row) => row.id));
    const complete = () => new Set(follower.received).size >= stored.size;
    await eventually('all events', complete, FOLLOWED_WITHIN_MS).catch(() => undefined);
    const received = new Set(follower.received);
    const lost = stored.difference(received).size;
    const twice = follower.received.length - received.size;
    const foreign = received.difference(stored).size;
    if (lost + twice + foreign + follower.gaps() > 0) {
      losses.push(
        `${email}: ${lost} lost, ${twice} twice, ${foreign} unknown, ${follower.gaps()} gaps`,
      );
    }
  }
  return losses;
}

/** Waits until nothing of the pods is left on the engine and no GPU is reserved, after all pods were removed. */
export async function compareEmpty(world: ChaosWorld, db: Database): Promise<string[]> {
  let left: string[] = [];
  const look = async () => {
    await systemClock.sleep(POLL_MS);
    const ours = { [LABELS.managed]: '1' };
    const [containers, networks, volumes, slots] = await Promise.all([
      world.engine.listContainers(ours),
      world.engine.listNetworks(ours),
      world.engine.listVolumes(ours),
      db.selectFrom('gpu_slots').select('pod_id').where('pod_id', 'is not', null).execute(),
    ]);
    const objects = [...containers, ...networks, ...volumes];
    left = [
      ...objects.flatMap(({ labels }) => labels[LABELS.pod] ?? []),
      ...slots.map(({ pod_id }) => `slot of ${pod_id}`),
    ];
    return left.length === 0;
  };
  await eventually('removal', look, SETTLES_WITHIN_MS).catch(() => undefined);
  return left.map((what) => `left behind: ${what}`);
}
