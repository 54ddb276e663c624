/** Backups and restores of folders of a container with the real restic, on overlay layers. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { dirname, join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { MAX_LISTED_PATHS, type OperationView } from '#shared/api/agent/operations.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { attributeAt, writeWithAttribute } from '../../test/fakes/extended-attributes.ts';
import { changeMixedTree, writeMixedTree } from '../../test/fakes/mixed-tree.ts';
import {
  type ContainerScene,
  createContainerScene,
} from '../../test/fakes/scenes/container-scene.ts';
import type { OperationService } from './operation.service.ts';

// restic runs at the lowest priority, so these tests take long on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

/** In MiB. */
const SIZE = { random: 2, text: 1, sparse: 3, smallFiles: 60 };
const HOME = { source_path: '/root', target_path: '/root' };

const scenes: ContainerScene[] = [];
const services: OperationService[] = [];

function newScene(): { scene: ContainerScene; service: OperationService } {
  const scene = createContainerScene();
  scenes.push(scene);
  return { scene, service: opened(scene) };
}

function opened(scene: ContainerScene, program = 'restic'): OperationService {
  const service = scene.open({ program });
  services.push(service);
  return service;
}

/** Creates a restic that runs a script before and after it backs up. */
function resticWith(scene: ContainerScene, { before = '', after = '' }): string {
  const program = join(scene.folder, 'odd-restic');
  const script = `#!/bin/sh\ncase "$*" in backup*) ;; *) exec restic "$@";; esac\n${before}\nrestic "$@"; code=$?\n${after}\nexit $code\n`;
  writeFileSync(program, script);
  chmodSync(program, 0o755);
  return program;
}

afterEach(async () => {
  for (const service of services.splice(0)) await service.stop();
  for (const scene of scenes.splice(0)) scene.close();
});

async function backUp(
  scene: ContainerScene,
  service: OperationService,
  path = '/root',
): Promise<OperationView> {
  const request = scene.backupRequest({ path });
  service.beginBackup(scene.podId, request);
  return scene.ended(service, request.operation_id);
}

async function restore(
  scene: ContainerScene,
  service: OperationService,
  { snapshot_id: snapshot }: OperationView,
  change: Parameters<ContainerScene['restoreRequest']>[1] = HOME,
): Promise<OperationView> {
  const request = scene.restoreRequest(snapshot ?? '', change);
  service.beginRestore(scene.podId, request);
  return scene.ended(service, request.operation_id);
}

/** Names beside the container's layer: a restore must leave nothing there. */
const besideLayer = ({ layers }: ContainerScene) => readdirSync(dirname(layers.upper)).toSorted();

it('restores a folder exactly: files of image and container return, deleted files stay deleted, newer files vanish', async () => {
  const { scene, service } = newScene();
  const { inContainer, treeOf } = scene;
  const mixed = join(scene.folder, 'mixed');
  writeMixedTree(mixed, SIZE);
  inContainer(`rm root/bin/tool; cp -a '${mixed}' root/work; chmod 700 root`);
  const before = treeOf('root');
  const first = await backUp(scene, service);
  expect(first, first.log.join('\n')).toMatchObject({
    stage: 'done',
    quality: 'full',
    error: null,
    changed_files: { count: 0, paths: [] },
  });
  changeMixedTree(mixed, SIZE);
  inContainer(`rm -r root/work; cp -a '${mixed}' root/work`);
  const after = treeOf('root');
  const second = await backUp(scene, service);

  inContainer('rm -r root; mkdir root; echo new > root/later; rm etc/hostname');
  const done = await restore(scene, service, first);
  expect(done, done.log.join('\n')).toMatchObject({ stage: 'done', percent: 100 });
  expect(treeOf('root')).toEqual(before);
  expect((await restore(scene, service, second)).stage).toBe('done');
  expect(treeOf('root')).toEqual(after);
  expect(inContainer('ls etc'), 'a file outside the restored folder').toBe('');
  expect(besideLayer(scene)).toEqual(['diff', 'work']);
  expect(scene.restic('list', 'locks')).toBe('');
  const shown = JSON.stringify(service.list());
  expect(shown).not.toContain(scene.folder);
});

it('restores into a container that lacks the folder, and into a new folder of the image', async () => {
  const { scene, service } = newScene();
  const { inContainer } = scene;
  const backup = await backUp(scene, service);
  inContainer('rm -r root');
  expect((await restore(scene, service, backup)).stage).toBe('done');
  expect(inContainer('cat root/.bashrc root/bin/tool')).toBe('of the image\n'.repeat(2));

  const target_path = '/home/user/deep/new';
  const done = await restore(scene, service, backup, { ...HOME, target_path, mode: 'new_only' });
  expect(done.stage, done.log.join('\n')).toBe('done');
  const shown = inContainer("find home -maxdepth 3 -type d -printf '%p %U:%G %m\\n'");
  expect(shown.trim().split('\n')).toEqual([
    'home 0:0 755',
    // Owner and mode as in the image; `deep`, which was missing, has the owner of its parent.
    'home/user 1000:1001 2750',
    'home/user/deep 1000:1001 2755',
    'home/user/deep/new 0:0 755',
  ]);
  const again = await restore(scene, service, backup, { ...HOME, target_path, mode: 'new_only' });
  expect(again).toMatchObject({ stage: 'failed', error: { code: 'TargetNotEmpty' } });
  const state = async (path: string) => (await service.restoreTarget(scene.podId, path)).state;
  expect([await state('/root'), await state('/none'), await state('/root/bin/none')]).toEqual([
    ...['occupied', 'absent', 'absent'],
  ]);
  const file = await backUp(scene, service, '/root/.bashrc');
  expect(file).toMatchObject({ stage: 'done', total_files: 1 });
  inContainer('rm root/.bashrc');
  const back = await restore(scene, service, file, {
    source_path: '/root/.bashrc',
    target_path: '/root/.bashrc',
  });
  expect(back.stage, back.log.join('\n')).toBe('done');
  expect(inContainer('cat root/.bashrc')).toBe('of the image\n');
});

it('restores the backup of a volume into the container, and the backup of a container’s folder into a volume', async () => {
  const { scene, service } = newScene();
  writeFileSync(join(scene.volume, 'file'), 'of the volume');
  const volume = await backUp(scene, service, '/data');
  const opt = { source_path: '/data', target_path: '/opt/x' };
  expect((await restore(scene, service, volume, opt)).stage).toBe('done');
  expect(scene.inContainer('cat opt/x/file')).toBe('of the volume');
  const container = await backUp(scene, service, '/opt/x');
  writeFileSync(join(scene.volume, 'file'), 'changed');
  const data = { source_path: '/opt/x', target_path: '/data' };
  expect((await restore(scene, service, container, data)).stage).toBe('done');
  expect(readFileSync(join(scene.volume, 'file'), 'utf8')).toBe('of the volume');
});

it('refuses links, folders of the kernel and temporary folders', async () => {
  const { scene, service } = newScene();
  scene.inContainer('ln -s /etc link; ln -s bin root/alias; mkfifo root/pipe; mkdir tmp var');
  const refused = ['/link', '/link/hostname', '/root/alias/tool', '/root/pipe', '/root/.bashrc/x'];
  const never = ['/tmp', '/var/tmp/x', '/mnt', '/proc/1', '/sys', '/dev/shm'];
  for (const path of [...refused, ...never]) {
    expect((await backUp(scene, service, path)).error?.code, path).toBe('PathRefused');
  }
  expect((await backUp(scene, service, '/root/none')).error?.code).toBe('PathMissing');
  const backup = await backUp(scene, service);
  for (const target_path of ['/link', '/link/x', '/dev/x', '/root/alias/x']) {
    const view = await restore(scene, service, backup, { ...HOME, target_path });
    expect(view.error?.code, target_path).toBe('PathRefused');
  }
  expect(scene.inContainer('ls etc')).toBe('hostname\n');
});

it('reads nothing of the host if the pod replaces a folder with a link during the backup', async () => {
  const { scene } = newScene();
  const secret = join(scene.folder, 'host-secrets');
  mkdirSync(secret);
  writeFileSync(join(secret, 'file'), 'secret of the host');
  scene.inContainer('mkdir root/work; echo mine > root/work/file');
  const work = join(scene.layers.upper, 'root/work');
  const read = `cat root/work/file > '${scene.folder}/read' 2>&1`;
  const before = `rm -r '${work}'; ln -s '${secret}' '${work}'; ${read}; touch root/touched`;
  const service = opened(scene, resticWith(scene, { before }));
  const view = await backUp(scene, service);
  expect(view.stage, view.log.join('\n')).toBe('done');
  expect(readFileSync(join(scene.folder, 'read'), 'utf8')).toContain('symbolic links');
  expect(scene.inContainer('ls root'), 'a backup can write there').not.toContain('touched');
  const dump = scene.restic('ls', view.snapshot_id ?? '');
  expect(dump).toContain('/root/work');
  expect(dump).not.toContain('/root/work/file');
});

it('lists the files that changed while they were read', async () => {
  const { scene } = newScene();
  scene.inContainer('cd root; echo a > a; echo b > "b\nb"; echo c > c; mkdir many; touch quiet');
  const home = join(scene.layers.upper, 'root');
  const many = `for n in $(seq 200); do echo x > '${home}/many/'$n; done`;
  const touch = "touch -d '2001-02-03'";
  // The pod may set the modification time of a file, but not hide its change.
  const write = `echo x >> '${home}/a'; ${touch} '${home}/a'; echo x >> '${home}/b\nb'; touch '${home}/new'`;
  // Replaces a file as editors do: writes another file and renames it.
  const replace = `${touch} '${home}/new'; mv '${home}/new' '${home}/c'`;
  const after = `${write}; ${replace}`;
  const few = await backUp(scene, opened(scene, resticWith(scene, { after })));
  expect(few).toMatchObject({
    stage: 'done',
    quality: 'full',
    changed_files: { count: 3, paths: ['/root/a', '/root/b\nb', '/root/c'] },
  });
  expect(few.log.join('\n')).toContain('3 files changed while they were read');
  scene.inContainer('for n in $(seq 200); do touch root/many/$n; done');
  const all = await backUp(scene, opened(scene, resticWith(scene, { after: many })));
  expect(all.changed_files?.count).toBe(200);
  expect(all.changed_files?.paths).toHaveLength(MAX_LISTED_PATHS);
});

it('lists the files of a volume that changed while they were read', async () => {
  const { scene } = newScene();
  const file = join(scene.volume, 'file');
  writeFileSync(file, 'of the volume');
  const [read, changed] = [join(scene.folder, 'read'), join(scene.folder, 'changed')];
  const after = `touch '${read}'; while [ ! -e '${changed}' ]; do sleep 0.05; done`;
  const ended = backUp(scene, opened(scene, resticWith(scene, { after })), '/data');
  await eventually('the files are read', () => existsSync(read));
  appendFileSync(file, ', changed');
  writeFileSync(changed, '');
  expect((await ended).changed_files).toEqual({ count: 1, paths: ['/data/file'] });
});

it('omits sockets from backups, and restores a folder without entries', async () => {
  const { scene, service } = newScene();
  const socket = createServer().listen(join(scene.layers.upper, 'socket'));
  await once(socket, 'listening');
  scene.inContainer('echo kept > root/kept; mv socket root/socket');
  const backup = await backUp(scene, service);
  expect(backup, backup.log.join('\n')).toMatchObject({ stage: 'done', quality: 'full' });
  scene.inContainer('rm root/kept');
  const done = await restore(scene, service, backup);
  socket.close();
  expect(done.stage, done.log.join('\n')).toBe('done');
  expect(scene.inContainer('ls root')).toBe('bin\nkept\n');

  const empty = { source_path: '/home/user', target_path: '/home/user' };
  const before = await backUp(scene, service, '/home/user');
  scene.inContainer('touch home/user/later');
  const again = await restore(scene, service, before, empty);
  expect(again.stage, again.log.join('\n')).toBe('done');
  expect(scene.inContainer("ls -A home/user; stat -c '%u:%g %a' home/user")).toBe(
    '1000:1001 2750\n',
  );
});

it('refuses sparse files that are larger than the disk, and backs up after they were deleted', async () => {
  const { scene, service } = newScene();
  const { blocks, bsize } = statfsSync(scene.folder);
  scene.inContainer(`cd root; truncate -s ${blocks * bsize} a b c d e`);
  const view = await backUp(scene, service);
  expect(view.error).toMatchObject({
    code: 'NoSpace',
    message: expect.stringMatching(
      /^The files have \d+ bytes, including the holes of sparse files/,
    ),
  });
  scene.inContainer('rm root/?');
  expect((await backUp(scene, service)).stage).toBe('done');
  expect(scene.restic('list', 'locks')).toBe('');
});

it('does not wait for a named pipe that replaces a file while it is opened', async () => {
  const { scene } = newScene();
  const pipe = join(scene.folder, 'pipe');
  // restic opens files without O_NONBLOCK, which would prevent the wait.
  const before = `mkfifo '${pipe}'; : < '${pipe}'`;
  const view = await backUp(scene, opened(scene, resticWith(scene, { before })));
  expect(view.error).toMatchObject({
    code: 'PathRefused',
    message: expect.stringContaining('replaced with a named pipe'),
  });
  expect((await backUp(scene, opened(scene))).stage).toBe('done');
});

it('shows no other folder of the image, whatever overlay attributes a snapshot has', async () => {
  const { scene, service } = newScene();
  const key = 'trusted.overlay.redirect';
  writeWithAttribute(scene.volume, 'hostile', null, { key, value: '/etc' });
  expect(attributeAt(join(scene.volume, 'hostile'), key)).toBe('/etc');
  const backup = await backUp(scene, service, '/data/hostile');
  const paths = { source_path: '/data/hostile', target_path: '/opt/hostile' };
  const view = await restore(scene, service, backup, paths);
  const found = scene.inContainer('ls -A opt/hostile 2>/dev/null || true');
  expect([view.stage, found]).toEqual([view.stage === 'done' ? 'done' : 'failed', '']);
  expect(attributeAt(join(scene.layers.upper, 'opt/hostile'), key)).toBeNull();

  // A marker that hides a file of a lower layer, and a device.
  mkdirSync(join(scene.volume, 'marker'));
  execFileSync('mknod', [join(scene.volume, 'marker/tool'), 'c', '0', '0']);
  const marker = await backUp(scene, service, '/data/marker');
  const bin = { source_path: '/data/marker', target_path: '/root/bin' };
  const refused = await restore(scene, service, marker, bin);
  expect(refused.stage, refused.log.join('\n')).toBe('failed');
  expect(scene.inContainer('cat root/bin/tool')).toBe('of the image\n');
});

it('puts the old folder back if the pod does not run with the restored one', async () => {
  const { scene, service } = newScene();
  const backup = await backUp(scene, service);
  scene.inContainer('rm root/.bashrc; echo mine > root/mine');
  const before = scene.treeOf('root');
  const mine = join(scene.layers.upper, 'root/mine');
  scene.pod.state = () => (existsSync(mine) ? 'running' : 'failed');
  const view = await restore(scene, service, backup);
  expect(view).toMatchObject({ stage: 'failed', error: { code: 'RolledBack' } });
  expect(scene.treeOf('root')).toEqual(before);
  expect(besideLayer(scene)).toEqual(['diff', 'work']);
});

it('refuses a restore beyond the disk limit of the pod, before anything changes', async () => {
  const { scene, service } = newScene();
  const mib = 1024 * 1024;
  scene.inContainer(`head -c ${4 * mib} /dev/urandom > root/large`);
  const backup = await backUp(scene, service);
  scene.inContainer('rm root/large');
  const before = scene.treeOf('root');
  scene.pod.freeBytes = 3 * mib;
  const view = await restore(scene, service, backup);
  expect(view.error).toMatchObject({
    code: 'NoSpace',
    message: expect.stringMatching(/^The restored tree has \d+ bytes, the pod's disk limit leaves/),
  });
  expect(scene.treeOf('root')).toEqual(before);
  expect(besideLayer(scene)).toEqual(['diff', 'work']);
  scene.inContainer(`head -c ${2 * mib} /dev/urandom > root/other`);
  // The old tree counts as free: it is deleted.
  expect((await restore(scene, service, backup)).stage).toBe('done');
});

it('fails if an edit of the pod replaces the container during the restore', async () => {
  const { scene, service } = newScene();
  const backup = await backUp(scene, service);
  scene.pod.state = () => {
    if (scene.store.unfinished(1)[0]?.stage === 'verifying') scene.pod.containerId = 'container-2';
    return 'running';
  };
  const early = await restore(scene, service, backup);
  expect(early).toMatchObject({ stage: 'failed', error: { code: 'ContainerReplaced' } });
  scene.pod.state = () => {
    if (scene.store.unfinished(1)[0]?.stage === 'starting') scene.pod.containerId = 'container-3';
    return 'running';
  };
  const late = await restore(scene, service, backup);
  expect(late).toMatchObject({ stage: 'failed', error: { code: 'ContainerReplaced' } });
  const replace = opened(scene, resticWith(scene, { after: 'sleep 1' }));
  const read = backUp(scene, replace);
  await eventually('the upload', () => scene.store.unfinished(1)[0]?.stage === 'uploading');
  scene.pod.containerId = 'container-4';
  expect((await read).error?.code).toBe('ContainerReplaced');
  expect(besideLayer(scene)).toEqual(['diff', 'work']);
});

it('refuses folders of a container that the agent cannot read, and names the volumes', async () => {
  const { scene, service } = newScene();
  rmSync(dirname(scene.image), { recursive: true });
  const view = await backUp(scene, service);
  expect(view.error?.code).toBe('EngineFailed');
  scene.pod.containerId = '';
  expect((await backUp(scene, service)).error).toEqual({
    code: 'PathRefused',
    message:
      '/root is not in a volume of the pod (/data), and this node can back up and restore volumes only',
  });
});
