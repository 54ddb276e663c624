/**
 * Backs up and restores a gigabyte, and 100,000 small files, through the agent, compared with restic alone on a
 * repository of the same kind.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type OperationView, repositoryVariables } from '#shared/api/agent/operations.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createRunChild } from '../../agent/backups/bounded-child.ts';
import type { OperationService } from '../../agent/backups/operation.service.ts';
import { createRestic } from '../../agent/backups/restic.ts';
import { createResticCgroup, type ResticCgroup } from '../../agent/backups/restic-cgroup.ts';
import { resticCommand } from '../../agent/backups/restic-command.ts';
import { ONE_GIB, writeMixedTree } from '../fakes/mixed-tree.ts';
import { type GatedScene, startGatedScene } from '../fakes/scenes/gated-scene.ts';
import { median, type Row, ratioAtMost } from '../measure/row.ts';

const run = promisify(execFile);

const ROUNDS = 3;
const POLL_MS = 20;
const BACKUP_BAR = 1.05;
const UNCHANGED_BAR = 0.3;
const RESTORE_BAR = 1.1;
const SMALL_FILES_BAR = 2;
const FOLDERS = 1_000;
const FILES_PER_FOLDER = 100;
/** 32 characters, as the central API creates them. */
const PASSWORD = '0123456789abcdef0123456789abcdef';

type Times = { backup: number[]; unchanged: number[]; restore: number[] };

const none = (): Times => ({ backup: [], unchanged: [], restore: [] });

/**
 * Measures backups and restores in rounds that alternate with the reference, so that load on the host affects both
 * alike. Needs root and about 5 GB of disk.
 */
export async function backups(): Promise<Row[]> {
  const [ours, bare] = [none(), none()];
  for (let round = 0; round < ROUNDS; round += 1) {
    const parts = [() => byAgent(ours), () => byRestic(bare)];
    for (const part of round % 2 === 0 ? parts : parts.reverse()) await part();
  }
  const of = (times: readonly number[]) => median(times) / 1_000;
  const row = (name: string, against: string, mine: number, other: number, bar: number) =>
    ratioAtMost(name, 's', against, { ours: mine, reference: other }, bar);
  const backup = of(ours.backup);
  return [
    row('backup, 1 GB', 'restic backup, same priority', backup, of(bare.backup), BACKUP_BAR),
    row('backup, unchanged', 'our first', of(ours.unchanged), backup, UNCHANGED_BAR),
    row(
      'restore, 1 GB',
      'restic restore --verify, sync and removal of the old tree, same priority',
      of(ours.restore),
      of(bare.restore),
      RESTORE_BAR,
    ),
  ];
}

/** Measures backups of many small files, which cost time per file. Needs root and about 1 GB of disk. */
export async function smallFiles(): Promise<Row[]> {
  const [ours, bare] = [none(), none()];
  await byAgent(ours, writeSmallFiles);
  await byRestic(bare, writeSmallFiles);
  const row = (name: string, part: keyof Times) => {
    const measured = { ours: median(ours[part]) / 1_000, reference: median(bare[part]) / 1_000 };
    return ratioAtMost(name, 's', 'restic backup, same priority', measured, SMALL_FILES_BAR);
  };
  return [
    row('backup, 100,000 files', 'backup'),
    row('backup, 100,000 files, unchanged', 'unchanged'),
    row('restore, 100,000 files', 'restore'),
  ];
}

function writeSmallFiles(volume: string): void {
  for (let folder = 0; folder < FOLDERS; folder += 1) {
    const path = join(volume, `${folder}`);
    mkdirSync(path);
    for (let file = 0; file < FILES_PER_FOLDER; file += 1) {
      writeFileSync(
        join(path, `${file}`),
        `file ${file} of folder ${folder}\n`.repeat(1 + (file % 50)),
      );
    }
  }
}

const writeGigabyte = (volume: string) => writeMixedTree(join(volume, 'tree'), ONE_GIB);

/** Creates the files to back up, and a repository whose password derivation costs as much as restic's default. */
async function prepared(write: (volume: string) => void): Promise<GatedScene> {
  const gated = await startGatedScene({ isQuick: false, password: PASSWORD });
  const { scene } = gated;
  write(scene.volume);
  await run('restic', ['-r', scene.location, 'init'], { env: environment() });
  await run('sync', []);
  return gated;
}

function cgroup(): ResticCgroup {
  const log = createLog({ name: 'bench', level: 'silent' });
  return createResticCgroup({ name: `podwright-bench-${systemRandom.uuid()}`, log });
}

function environment(variables: Record<string, string> = {}) {
  const { PATH = '' } = process.env;
  return { PATH, HOME: '/nonexistent', RESTIC_PASSWORD: PASSWORD, ...variables };
}

async function byAgent(times: Times, write = writeGigabyte): Promise<void> {
  const { scene, direct: repository, close } = await prepared(write);
  const service = scene.open({
    restic: createRestic({
      clock: systemClock,
      runChild: createRunChild(systemClock),
      program: 'restic',
      isRoot: true,
      cgroup: cgroup(),
    }),
  });
  const backUp = async () => {
    const request = scene.backupRequest({ create_repository: false, repository });
    return timed(service, request.operation_id, () => service.beginBackup(scene.podId, request));
  };
  const first = await backUp();
  times.backup.push(first.ms);
  times.unchanged.push((await backUp()).ms);
  const request = scene.restoreRequest(first.view.snapshot_id ?? '', { repository });
  const begin = () => service.beginRestore(scene.podId, request);
  times.restore.push((await timed(service, request.operation_id, begin)).ms);
  await service.stop();
  await close();
}

async function timed(service: OperationService, id: string, begin: () => void) {
  const startedMs = systemClock.monotonicMs();
  begin();
  let view: OperationView = service.get(id);
  while (view.finished_ms === null) {
    await systemClock.sleep(POLL_MS);
    view = service.get(id);
  }
  if (view.stage !== 'done') throw new Error(JSON.stringify(view.error));
  return { view, ms: systemClock.monotonicMs() - startedMs };
}

async function byRestic(times: Times, write = writeGigabyte): Promise<void> {
  const { scene, direct, close } = await prepared(write);
  const env = environment(repositoryVariables(direct));
  const group = cgroup();
  const { procsFiles } = await group.enter();
  /** Runs a program at the same low priority as the agent's restic: otherwise rows would measure the host's other load. */
  const timeOf = async (program: string, ...args: string[]) => {
    const words = resticCommand(program, args, null, procsFiles);
    const startedMs = systemClock.monotonicMs();
    await run(words[0], words.slice(1), { env, cwd: scene.folder });
    return systemClock.monotonicMs() - startedMs;
  };
  const restic = (...args: string[]) => timeOf('restic', '--no-cache', '--quiet', ...args);
  times.backup.push(await restic('backup', scene.volume));
  times.unchanged.push(await restic('backup', scene.volume));
  const target = join(scene.folder, 'restored');
  const restored = await restic('restore', 'latest', '--verify', '--target', target);
  const synced = await timeOf('sync', '--file-system', target);
  // The agent's restore ends when the files are on disk and the tree that they replace is gone.
  const startedMs = systemClock.monotonicMs();
  await rm(scene.volume, { recursive: true });
  times.restore.push(restored + synced + systemClock.monotonicMs() - startedMs);
  rmSync(target, { recursive: true });
  await group.leave();
  await close();
}
