/**
 * Kills the agent at every step of a restore into a container. The next agent completes the restore or puts the old
 * tree back.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { runCommand } from '#shared/runtime/run-command.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { mortalStore } from '../../test/fakes/faults/mortal-store.ts';
import type { Order } from '../../test/fakes/faults/operation-worker.ts';
import {
  type ContainerScene,
  createContainerScene,
} from '../../test/fakes/scenes/container-scene.ts';
import type { Restic } from './restic.ts';

const SNAPSHOT = 'a'.repeat(64);
const CONTENT = 'restored\n';
const WORKER = new URL('../../test/fakes/faults/operation-worker.ts', import.meta.url).pathname;
vi.setConfig({ testTimeout: 180_000 });

/** Creates a restic whose only snapshot is a folder with one file, which it writes through the overlay. */
function fakeRestic({ folder }: ContainerScene): Restic {
  const never = () => Promise.reject(new Error('not here'));
  return {
    checkVersion: async () => undefined,
    make: async () => undefined,
    unlock: async () => undefined,
    statsOf: async () => ({ total_size: CONTENT.length, total_file_count: 2 }),
    backup: never,
    readTrees: never,
    list: never,
    check: never,
    async restore(_session, { jail, target }) {
      if (!('lower' in jail) || jail.write === null) throw new Error('not a jail of layers');
      const tree = join(jail.write.upper, target, 'root');
      mkdirSync(tree, { recursive: true });
      writeFileSync(join(tree, 'file'), CONTENT);
      expect(tree.startsWith(folder)).toBe(true);
    },
  };
}

/** Skips syncs of the whole file system, which other tests would slow down. */
const withoutSync: typeof runCommand = (file, args, options) =>
  file === 'sync'
    ? Promise.resolve({ exitCode: 0, stdout: '', stderr: '', ended: null })
    : runCommand(file, args, options);

const filesIn = (scene: ContainerScene) =>
  scene.inContainer('find . -type f | sort; cat root/file home/user/deep/file 2>/dev/null || true');

/** Resolves with the step at which the agent was killed; null if the restore had fewer steps. */
async function cutOff(options: {
  at: number;
  when: 'before' | 'after';
  target: string;
  fails: boolean;
}): Promise<string | null> {
  const { at, when, target, fails } = options;
  const scene = createContainerScene({ quick: true });
  // The container has changed its home folder: it removed the image's file and added another.
  scene.inContainer('rm root/.bashrc; echo mine > root/mine');
  const before = filesIn(scene);
  const isRefused = () => fails && existsSync(join(scene.layers.upper, target, 'file'));
  scene.pod.state = () => (isRefused() ? 'failed' : 'running');
  const { mortal, state } = mortalStore(scene.store, at, when);
  const ports = { restic: fakeRestic(scene), runCommand: withoutSync };
  const first = scene.open({ ...ports, store: mortal });
  const request = scene.restoreRequest(SNAPSHOT, { source_path: '/root', target_path: target });
  try {
    first.beginRestore(scene.podId, request);
  } catch {
    // The agent was killed before it could respond.
  }
  const ended = () => scene.store.get(request.operation_id)?.finished_ms != null || state.isDead;
  await eventually('the kill or the end', ended);
  await first.stop();
  const wasCut = state.isDead;
  const second = scene.open(ports);
  second.start();
  if (scene.store.get(request.operation_id) === null) second.beginRestore(scene.podId, request);
  const view = await scene.ended(second, request.operation_id);
  const what = `${target} killed ${when} ${state.diedAt}: ${view.log.join('; ')}`;
  expect({ stage: view.stage, code: view.error?.code ?? null }, what).toEqual(
    fails ? { stage: 'failed', code: 'RolledBack' } : { stage: 'done', code: null },
  );
  const left = readdirSync(dirname(scene.layers.upper)).toSorted();
  expect(left, what).toEqual(['diff', 'work']);
  if (fails) expect(filesIn(scene), what).toBe(before);
  else
    expect(scene.inContainer(`ls -A .${target}; cat .${target}/file`), what).toBe(
      `file\n${CONTENT}`,
    );
  await second.stop();
  scene.close();
  return wasCut ? state.diedAt : null;
}

/** One row of the table kills the agent before the database write of a step, another row after that write. */
it.each([
  { target: '/root', fails: true, moments: ['before', 'after'] },
  { target: '/home', fails: true, moments: ['after', 'before'] },
  { target: '/home/user/deep', fails: false, moments: ['after', 'before'] },
] as const)('completes after a kill at any step: $target, pod fails: $fails', async (given) => {
  const { moments, ...options } = given;
  const points = new Set<string>();
  for (let at = 1; ; at += 1) {
    const point = await cutOff({ ...options, at, when: moments[at % 2] ?? 'after' });
    if (point === null) break;
    points.add(point);
  }
  const last = given.fails ? ['swapping undoing', 'swapping undone'] : ['committed new_in'];
  const expected = ['fetching fetching', 'stopping staged', 'swapping ready', 'swapping old_aside'];
  expect([...points]).toEqual(expect.arrayContaining([...expected, 'starting new_in', ...last]));
});

/** Runs the restore in another process, and kills that process at the moment that `order` names. */
async function killedAt(
  { folder, podId, location }: ContainerScene,
  order: Pick<Order, 'asked' | 'haltAt'>,
): Promise<void> {
  const haltedFile = join(folder, 'halted');
  const scene = { folder, podId, location, container: true };
  const argument = JSON.stringify({ scene, haltedFile, program: 'restic', ...order });
  const child = spawn(process.execPath, [WORKER, argument], { stdio: 'inherit' });
  const exited = once(child, 'exit');
  try {
    await eventually('the moment', () => {
      if (child.exitCode !== null) throw new Error(`the worker ended with ${child.exitCode}`);
      return existsSync(haltedFile);
    });
  } finally {
    child.kill('SIGKILL');
    await exited;
  }
}

it.each([
  { stage: 'fetching', step: 'fetching', when: 'after' },
  { stage: 'swapping', step: 'ready', when: 'after' },
  { stage: 'swapping', step: 'old_aside', when: 'before' },
  { stage: 'swapping', step: 'new_in', when: 'before' },
] as const)('restores with the real restic after kill -9 $when $stage $step', async (haltAt) => {
  const scene = createContainerScene();
  scene.inContainer('echo mine > root/mine; rm root/bin/tool');
  const tree = scene.treeOf('root');
  const service = scene.open();
  const backup = scene.backupRequest({ path: '/root' });
  service.beginBackup(scene.podId, backup);
  const { snapshot_id } = await scene.ended(service, backup.operation_id);
  await service.stop();
  scene.inContainer('rm root/mine; echo later > root/later');
  const paths = { source_path: '/root', target_path: '/root' };
  const request = scene.restoreRequest(snapshot_id ?? '', paths);
  await killedAt(scene, { asked: { kind: 'restore', request }, haltAt });
  const next = scene.open();
  next.start();
  const view = await scene.ended(next, request.operation_id);
  expect(view, view.log.join('; ')).toMatchObject({ stage: 'done', error: null });
  expect(scene.treeOf('root')).toEqual(tree);
  expect(readdirSync(dirname(scene.layers.upper)).toSorted()).toEqual(['diff', 'work']);
  await next.stop();
  scene.close();
});
