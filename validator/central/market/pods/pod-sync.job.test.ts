import { afterEach, beforeEach, expect, it } from 'vitest';
import { createGuardedClock } from '#shared/runtime/guarded-clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createFakeAgents } from '../../../../test/fakes/agents/fake-agents.ts';
import { createManualClock, type ManualClock } from '../../../../test/fakes/manual-clock.ts';
import { createTestDatabase } from '../../../../test/fakes/scenes/central-database.ts';
import { createMails } from '../../delivery/mail/mail.service.ts';
import type { Database } from '../../platform/database/tables.ts';
import { createPodSyncJob } from './pod-sync.job.ts';
import { enterQueue } from './sync-queue.store.ts';
import { createSyncQueue, type SyncQueue } from './sync-queue.ts';

const INTERVAL_MS = 10_000;
const PROCESS = { bootId: 'one', others: async () => [] };

let db: Database;
let clock: ManualClock;
let lines: { msg: string; delay_seconds?: number }[];
beforeEach(async () => {
  db = await createTestDatabase();
  clock = createManualClock();
  lines = [];
});
afterEach(() => db.destroy());

const unused = async (): Promise<never> => {
  throw new Error('not used in this test');
};

/** A pod sync over agents that answer when the test lets them. No node has pods, and every node may have volumes. */
function createJob({
  concurrency = 2,
  queue = queueOf(),
}: {
  concurrency?: number;
  queue?: SyncQueue;
} = {}) {
  const polled: string[] = [];
  const waiting = new Map<string, () => void>();
  const write = (line: string) => void lines.push(JSON.parse(line));
  const log = createLog({ name: 'test', level: 'warn' }, { write });

  const fakes = createFakeAgents();
  const clientOf = (executorId: string) => ({
    ...fakes.clientOf(executorId),
    async listPods() {
      polled.push(executorId);
      await new Promise<void>((resolve) => waiting.set(executorId, resolve));
      return [];
    },
  });
  const secret = new Uint8Array(32);
  const mails = createMails({ db, clock, random: systemRandom, secret, isSent: false });

  const job = createPodSyncJob({
    db,
    clock,
    random: systemRandom,
    log,
    queue,
    syncIntervalMs: INTERVAL_MS,
    syncConcurrency: concurrency,
    agents: { ...fakes, clientOf },
    mails,
    loginOf: unused,
    secretsOf: unused,
    notebookToken: () => '',
    operations: { pass: async () => false, restoresAtStart: unused, unanswered: unused },
    volumes: { pass: async () => null, isWorking: unused, hasCopies: async () => true },
    unknownPods: { survey: async () => new Map() },
    inMaintenance: unused,
    launchLimitMs: 600_000,
    trust: createGuardedClock({ clock, log }),
    detachVolume: unused,
    wakeOthers: () => undefined,
  });
  return {
    job,
    polled,
    answer(executorId: string): void {
      waiting.get(executorId)?.();
      waiting.delete(executorId);
    },
  };
}

function queueOf(): SyncQueue {
  return createSyncQueue({ db, clock, processes: PROCESS });
}

/** Advances the clock by the time for which ends of passes are gathered. */
async function moment(): Promise<void> {
  await clock.advance(20);
}

async function addNodes(count: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    await enterQueue(db, `node ${index}`, clock.now() - count + index);
  }
}

it('starts a pass as soon as another ends, up to the limit of concurrent passes', async () => {
  await addNodes(4);
  const { job, polled, answer } = createJob();
  job.start();
  await expect.poll(() => polled).toEqual(['node 0', 'node 1']);
  answer('node 1');
  await expect.poll(() => moment().then(() => polled)).toEqual(['node 0', 'node 1', 'node 2']);
  answer('node 2');
  const all = ['node 0', 'node 1', 'node 2', 'node 3'];
  await expect.poll(() => moment().then(() => polled)).toEqual(all);
  for (const id of ['node 0', 'node 3']) answer(id);
  await job.stop();
});

it('syncs each node again after the interval, and a woken one at once', async () => {
  await addNodes(2);
  const { job, polled, answer } = createJob();
  job.start();
  await expect.poll(() => polled).toHaveLength(2);
  const released = () =>
    db.selectFrom('sync_turns').select('boot_id').where('boot_id', 'is', null).execute();
  for (const id of ['node 0', 'node 1']) answer(id);
  await expect.poll(() => moment().then(released)).toHaveLength(2);
  await clock.advance(INTERVAL_MS - 300);
  expect(polled).toHaveLength(2);
  job.wake('node 1');
  await expect.poll(() => polled).toEqual(['node 0', 'node 1', 'node 1']);
  await clock.advance(1_000);
  await expect.poll(() => polled.at(-1)).toBe('node 0');
  for (const id of ['node 0', 'node 1']) answer(id);
  await job.stop();
});

it('abandons passes that do not end within five seconds of a stop', async () => {
  await addNodes(1);
  const { job, polled } = createJob();
  job.start();
  await expect.poll(() => polled).toHaveLength(1);
  let isStopped = false;
  const stopped = job.stop().then(() => (isStopped = true));
  await expect.poll(() => clock.advance(1_000).then(() => isStopped)).toBe(true);
  await stopped;
  // A dead process does not list itself as alive, so that the next process claims the node again.
  const next = createSyncQueue({ db, clock, processes: { ...PROCESS, bootId: 'next' } });
  const limits = { total: 1, unreachable: 1, reserved: 0 };
  const store = async () => undefined;
  const none = { releases: [], wakes: [], running: [], aheadMs: 0, store };
  const { claims } = await next.exchange({ ...none, limits });
  expect(claims).toEqual([{ executorId: 'node 0', failures: 0 }]);
});

it('logs that nodes wait too long', async () => {
  await addNodes(3);
  const { job, polled, answer } = createJob();
  job.start();
  await expect.poll(() => polled).toHaveLength(2);
  await expect.poll(() => clock.advance(10_000).then(() => lines)).not.toEqual([]);
  expect(lines[0]?.msg).toContain('nodes wait too long');
  expect(lines[0]?.delay_seconds).toBeGreaterThanOrEqual(30);
  for (const id of ['node 0', 'node 1', 'node 2']) answer(id);
  await expect.poll(() => moment().then(() => polled)).toHaveLength(3);
  answer('node 2');
  await job.stop();
});

it('stores wakes and the ends of passes later if the database fails', async () => {
  await addNodes(1);
  const queue = queueOf();
  let fails = false;
  const { job, polled, answer } = createJob({
    queue: {
      ...queue,
      exchange: async (exchange) => {
        if (fails) throw new Error('locked');
        return queue.exchange(exchange);
      },
    },
  });
  job.start();
  await expect.poll(() => polled).toHaveLength(1);
  fails = true;
  answer('node 0');
  job.wake('node 0');
  await expect.poll(() => lines.map(({ msg }) => msg)).toContain('pod sync: locked');
  fails = false;
  await expect.poll(() => clock.advance(300).then(() => polled)).toHaveLength(2);
  answer('node 0');
  await job.stop();
});
