/** Restores that are interrupted before and after every write of their journal; the next agent completes them. */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { eventually } from '../../test/fakes/eventually.ts';
import { isStep, mortalStore, stepOf } from '../../test/fakes/faults/mortal-store.ts';
import { createBackupScene } from '../../test/fakes/scenes/backup-scene.ts';
import { isFinal } from './operation.state.ts';
import type { OperationStore } from './operation.store.ts';
import type { Restic } from './restic.ts';

const SNAPSHOT = 'a'.repeat(64);
const CONTENT = 'restored\n';

/** Creates a restic whose only snapshot is a folder with one file. */
function fakeRestic(): Restic {
  return {
    checkVersion: async () => undefined,
    make: async () => undefined,
    unlock: async () => undefined,
    backup: () => Promise.reject(new Error('not expected in this test')),
    statsOf: async () => ({ total_size: CONTENT.length, total_file_count: 2 }),
    readTrees: () => Promise.reject(new Error('not expected in this test')),
    list: () => Promise.reject(new Error('not expected in this test')),
    check: () => Promise.reject(new Error('not expected in this test')),
    async restore(_talk, { target }) {
      mkdirSync(join(target, '_data'), { recursive: true });
      writeFileSync(join(target, '_data', 'file'), CONTENT);
    },
  };
}

function textOf(path: string): string | null {
  return existsSync(path) ? readFileSync(path, 'utf8') : null;
}

/** Resolves with the step at which the agent was killed; null if the restore had fewer steps. */
async function cutOff(options: {
  at: number;
  when: 'before' | 'after';
  target: '/data' | '/data/inner/new';
  fails: boolean;
}): Promise<string | null> {
  const scene = createBackupScene({ quick: true });
  const live = join(scene.volume, options.target.slice('/data'.length));
  const hadOld = options.target === '/data';
  writeFileSync(join(scene.volume, 'file'), 'old\n');
  const isRefused = () => options.fails && textOf(join(live, 'file')) === CONTENT;
  scene.pod.state = () => (isRefused() ? 'failed' : 'running');
  const { mortal, state } = mortalStore(scene.store, options.at, options.when);
  const first = scene.open({ store: mortal, restic: fakeRestic() });
  const request = scene.restoreRequest(SNAPSHOT, { target_path: options.target });
  try {
    first.beginRestore(scene.podId, request);
  } catch {
    // The agent was killed before it could respond.
  }
  const ended = () => scene.store.get(request.operation_id)?.finished_ms != null || state.isDead;
  await eventually('the kill or the end', ended);
  await first.stop();
  const wasCut = state.isDead;
  const second = scene.open({ restic: fakeRestic() });
  second.start();
  if (scene.store.get(request.operation_id) === null) second.beginRestore(scene.podId, request);
  const view = await scene.ended(second, request.operation_id);
  const found = textOf(join(live, 'file'));
  const left = readdirSync(dirname(scene.volume));
  const rest = readFileSync(join(scene.volume, 'file'), 'utf8');
  scene.close();
  const outcome = { stage: view.stage, code: view.error?.code ?? null, found, left };
  const wanted = options.fails
    ? { stage: 'failed', code: 'RolledBack', found: hadOld ? 'old\n' : null }
    : { stage: 'done', code: null, found: CONTENT };
  expect(outcome, `killed ${options.when} ${state.diedAt}`).toEqual({ ...wanted, left: ['_data'] });
  if (!hadOld) expect(rest, 'the other files of the volume').toBe('old\n');
  return wasCut ? state.diedAt : null;
}

it.each([
  { target: '/data', fails: false },
  { target: '/data', fails: true },
  { target: '/data/inner/new', fails: false },
  { target: '/data/inner/new', fails: true },
] as const)('completes after a kill at any step: $target, pod fails: $fails', async (given) => {
  const points = new Set<string>();
  for (const when of ['before', 'after'] as const) {
    for (let at = 1; ; at += 1) {
      const point = await cutOff({ ...given, at, when });
      if (point === null) break;
      points.add(point);
    }
  }
  const last = given.fails ? ['swapping undoing', 'swapping undone'] : ['committed new_in'];
  const expected = ['fetching fetching', 'stopping staged', 'swapping ready', 'swapping old_aside'];
  expect([...points]).toEqual(expect.arrayContaining([...expected, 'starting new_in', ...last]));
});

/**
 * Creates a store whose writes fail from the step with this number on, until `isFull` is set to false, as on a full
 * disk. Reads succeed.
 */
function fullStore(store: OperationStore, fullAt: number) {
  const state = { steps: 0, isFull: false, refused: 0 };
  const full: OperationStore = {
    ...store,
    put(row) {
      if (isStep(store.get(row.id), row)) state.steps += 1;
      if (state.steps === fullAt && state.refused === 0) state.isFull = true;
      if (state.isFull) {
        state.refused += 1;
        throw new Error('database or disk is full');
      }
      store.put(row);
    },
  };
  return { full, state };
}

/** Returns true if the restore had a step with that number. */
async function runFull(fullAt: number, fails: boolean): Promise<boolean> {
  const scene = createBackupScene({ quick: true });
  const file = join(scene.volume, 'file');
  writeFileSync(file, 'old\n');
  const isRefused = () => fails && textOf(file) === CONTENT;
  scene.pod.state = () => (isRefused() ? 'failed' : 'running');
  const { full, state } = fullStore(scene.store, fullAt);
  const service = scene.open({ store: full, restic: fakeRestic() });
  const request = scene.restoreRequest(SNAPSHOT);
  service.beginRestore(scene.podId, request);
  const row = () => scene.store.get(request.operation_id);
  await eventually('a full disk, or the end', () => state.refused >= 2 || row()?.finished_ms);
  const met = row();
  const stage = met?.stage ?? 'done';
  const where = `${stage} ${met === null ? '' : stepOf(met)}`;
  if (state.isFull) {
    // The current stage is not final, and the pod's tree is readable.
    expect(isFinal(stage), where).toBe(false);
    const folder = met?.kind === 'restore' ? (met.journal?.folder ?? '') : '';
    const aside = join(folder, 'old', 'file');
    const kept = stage === 'committed' ? CONTENT : 'old\n';
    expect([textOf(file), textOf(aside)], where).toContain(kept);
  }
  state.isFull = false;
  const view = await scene.ended(service, request.operation_id);
  const left = readdirSync(dirname(scene.volume));
  const outcome = { stage: view.stage, code: view.error?.code ?? null, found: textOf(file), left };
  await service.stop();
  scene.close();
  const wanted = fails
    ? { stage: 'failed', code: 'RolledBack', found: 'old\n' }
    : { stage: 'done', code: null, found: CONTENT };
  expect(outcome, where).toEqual({ ...wanted, left: ['_data'] });
  return state.refused > 0;
}

it.each([false, true])(
  'continues a restore when rows can be written again, pod fails: %s',
  async (fails) => {
    let met = 0;
    // One after the other: the rollback of a restore has a time limit, which many at once may reach.
    for (let step = 2; step < 14; step += 1) if (await runFull(step, fails)) met += 1;
    expect(met).toBeGreaterThan(fails ? 8 : 6);
  },
);

it('deletes the staged tree of a restore that was cancelled while no agent ran', async () => {
  const scene = createBackupScene({ quick: true });
  const { mortal, state } = mortalStore(scene.store, 3, 'before');
  const first = scene.open({ store: mortal, restic: fakeRestic() });
  const request = scene.restoreRequest(SNAPSHOT);
  first.beginRestore(scene.podId, request);
  await eventually('the kill', () => state.isDead);
  await first.stop();
  expect(readdirSync(dirname(scene.volume))).toHaveLength(2);
  const row = scene.store.get(request.operation_id);
  if (row !== null) scene.store.put({ ...row, cancel_requested: true });
  const second = scene.open({ restic: fakeRestic() });
  second.start();
  expect((await scene.ended(second, request.operation_id)).stage).toBe('cancelled');
  expect(readdirSync(dirname(scene.volume))).toEqual(['_data']);
  scene.close();
});

it('stages the restored tree outside the volume', async () => {
  const scene = createBackupScene({ quick: true });
  const seen: string[] = [];
  const service = scene.open({
    restic: {
      ...fakeRestic(),
      async restore(_talk, { target }) {
        mkdirSync(join(target, '_data'));
        writeFileSync(join(target, '_data', 'file'), CONTENT);
        seen.push(...readdirSync(scene.volume));
      },
    },
  });
  const request = scene.restoreRequest(SNAPSHOT);
  service.beginRestore(scene.podId, request);
  expect((await scene.ended(service, request.operation_id)).stage).toBe('done');
  expect(seen).toEqual([]);
  scene.close();
});
