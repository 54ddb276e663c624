/** Backups and restores of container folders outside volumes, on the real engine. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it, vi } from 'vitest';
import type { OperationView } from '#shared/api/agent/operations.ts';
import type { PodView } from '#shared/api/agent/pod.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import {
  command,
  createRealHost,
  mustRun,
  type RealHost,
} from '../../test/fakes/agents/real-host.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { PASSWORD } from '../../test/fakes/scenes/backup-scene.ts';

// Long, because restic runs at the lowest priority.
vi.setConfig({ testTimeout: 180_000 });
const WITHIN_MS = 120_000;
const HOME = '/root';

const folder = mkdtempSync(join(tmpdir(), 'podwright-containers-'));
const repository = { location: join(folder, 'repository'), password: PASSWORD };
const hosts: RealHost[] = [];
afterAll(async () => {
  for (const host of hosts) await host.close();
  rmSync(folder, { recursive: true });
});

async function newHost(): Promise<RealHost> {
  const host = await createRealHost();
  hosts.push(host);
  return host;
}

/** Requests an operation and waits for its end. */
async function run(
  { agent }: RealHost,
  { id }: PodView,
  kind: 'backups' | 'restores',
  request: object,
  meanwhile: (view: () => OperationView) => Promise<unknown> = async () => undefined,
): Promise<OperationView> {
  const operation_id = systemRandom.uuid();
  const payload = { operation_id, repository, ...request };
  const url = `/v1/pods/${id}/${kind}`;
  const sent = await agent.server.inject({ method: 'POST', url, payload });
  expect(sent.statusCode, sent.body).toBe(200);
  const view = () => agent.operations.get(operation_id);
  await meanwhile(view);
  const ended = () => (view().finished_ms === null ? null : view());
  return eventually('the end of an operation', ended, WITHIN_MS);
}

const backUp = (host: RealHost, pod: PodView, path = HOME) =>
  run(host, pod, 'backups', { path, create_repository: true });

const restore = (host: RealHost, pod: PodView, { snapshot_id }: OperationView, target = HOME) =>
  run(host, pod, 'restores', { snapshot_id, source_path: HOME, target_path: target });

const inside = (pod: PodView, script: string) =>
  mustRun('docker', 'exec', pod.container_id ?? '', 'sh', '-ec', script);

/** Runs restic on the repository and returns its output. */
async function restic(...args: string[]): Promise<string> {
  process.env['RESTIC_PASSWORD'] = PASSWORD;
  return mustRun('restic', '-r', repository.location, ...args).finally(() => {
    delete process.env['RESTIC_PASSWORD'];
  });
}

const WORK = `mkdir -p /root/work/deep && cd /root && echo notes > work/notes && echo model > work/deep/model
chown -R 1000:1001 work && chmod 2750 work/deep && ln -s /etc/passwd out && chmod 700 /root && sync`;

it('restores /root of a running pod after a file was deleted, and restores the same backup on another node', async () => {
  const [first, second] = [await newHost(), await newHost()];
  const pod = await first.launch('sleep 3600', { volumes: ['/root/cache', '/data'] });
  await inside(pod, `${WORK}; echo kept > /root/cache/entry; echo mine > /opt-file`);
  const list = "find /root | sort | xargs stat -c '%n %F %a %u %g'";
  const before = await inside(pod, list);
  const saved = await backUp(first, pod);
  expect(saved, saved.log.join('\n')).toMatchObject({
    stage: 'done',
    quality: 'full',
    error: null,
    changed_files: { count: 0, paths: [] },
  });
  expect(saved.log.join('\n')).toContain('Volumes in this folder are not included: /root/cache');

  await inside(
    pod,
    'rm -r /root/work/notes /root/work/deep; echo later > /root/later; echo new > /root/cache/entry',
  );
  const done = await restore(first, pod, saved);
  expect(done, done.log.join('\n')).toMatchObject({ stage: 'done', error: null });
  expect((await first.view(pod.id)).container_id, 'the same container').toBe(pod.container_id);
  expect(await inside(pod, list)).toBe(before);
  expect(await inside(pod, 'cat /root/work/notes /root/work/deep/model')).toBe('notes\nmodel\n');
  expect(await inside(pod, 'cat /root/cache/entry /opt-file'), 'the rest').toBe('new\nmine\n');

  const other = await second.launch('sleep 3600');
  const moved = await restore(second, other, saved);
  expect(moved, moved.log.join('\n')).toMatchObject({ stage: 'done', error: null });
  expect(await inside(other, 'cat /root/work/notes /root/work/deep/model')).toBe('notes\nmodel\n');
  expect(await inside(other, "stat -c '%a %u %g' /root /root/work/deep")).toBe(
    '700 0 0\n2750 1000 1001\n',
  );
  const aside = await restore(second, other, saved, '/opt/copy/of/home');
  expect(aside.stage, aside.log.join('\n')).toBe('done');
  expect(await inside(other, 'cat /opt/copy/of/home/work/notes')).toBe('notes\n');
  // The engine still works with the container: it restarts, and is removed with everything in its layer.
  await mustRun('docker', 'restart', '-t', '1', other.container_id ?? '');
  expect(await inside(other, 'cat /root/work/notes')).toBe('notes\n');
  const format = '{{.GraphDriver.Data.UpperDir}}';
  const layer = await mustRun('docker', 'inspect', '-f', format, other.container_id ?? '');
  await second.remove(other.id);
  await eventually(
    'the pod is gone',
    async () => (await second.view(other.id)).phase === 'removed',
  );
  expect((await command('test', '-e', layer.trim())).exitCode).toBe(1);
});

it('reads no host files while the pod replaces folders with links to the host', async () => {
  const host = await newHost();
  const secret = join(folder, 'host-secrets');
  mkdirSync(secret);
  writeFileSync(join(secret, 'file'), 'secret-of-the-host');
  const swap = `mkdir -p /root/a /root/b; echo mine > /root/a/file
while :; do mv /root/a /root/c && ln -s '${secret}' /root/a && rm /root/a && mv /root/c /root/a; done`;
  const pod = await host.launch(swap);
  for (let count = 0; count < 2; count += 1) {
    const view = await backUp(host, pod);
    expect(view.stage, view.log.join('\n')).toBe('done');
    expect((await backUp(host, pod, '/root/a')).error?.code ?? 'PathRefused').toMatch(
      /^Path(?:Refused|Missing)$|^EngineFailed$/,
    );
  }
  const target = join(folder, 'read-back');
  for (const { id } of JSON.parse(await restic('snapshots', '--json'))) {
    await restic('restore', id, '--target', join(target, id));
  }
  const found = await command('grep', '-r', 'secret-of-the-host', target);
  expect(found.stdout).toBe('');
});

it('neither backs up nor replaces the secrets of a pod and the files that the node mounts into the pod', async () => {
  const host = await newHost();
  const value = 'V4LUE-of-a-secret';
  const secrets = { secret_names: ['token'], secrets: [{ name: 'token', value }] };
  const pod = await host.launch('sleep 3600', secrets as object);
  expect(await inside(pod, 'cat /run/secrets/token')).toBe(value);
  await inside(pod, 'echo mine > /run/mine');
  const saved = await backUp(host, pod, '/run');
  expect(saved, saved.log.join('\n')).toMatchObject({ stage: 'done', quality: 'full' });
  const kept = await restic('dump', '--archive', 'tar', saved.snapshot_id ?? '', '/');
  expect([kept.includes('mine'), kept.includes(value)]).toEqual([true, false]);
  for (const path of ['/run/secrets/token', '/etc/hosts']) {
    expect((await backUp(host, pod, path)).error?.code, path).toBe('PathRefused');
    const view = await restore(host, pod, saved, path);
    expect(view.error?.code, path).toBe('PathRefused');
  }
  await inside(pod, 'rm /run/mine');
  const done = await restore(host, pod, saved, '/run');
  expect(done.stage, done.log.join('\n')).toBe('done');
  expect(await inside(pod, 'cat /run/mine /run/secrets/token')).toBe(`mine\n${value}`);
});

it('completes a backup of a pod that reboots during the backup, and a backup of a stopped pod', async () => {
  const host = await newHost();
  const pod = await host.launch('sleep 3600');
  await inside(pod, 'mkdir -p /root; head -c 40000000 /dev/urandom > /root/random; sync');
  const url = `/v1/pods/${pod.id}`;
  const reboot = async (view: () => OperationView) => {
    await eventually('the upload', () => view().stage === 'uploading');
    await host.agent.server.inject({
      method: 'POST',
      url: `${url}/reboot`,
      payload: { reboot: 1 },
    });
  };
  const request = { path: HOME, create_repository: true };
  const saved = await run(host, pod, 'backups', request, reboot);
  expect(saved, saved.log.join('\n')).toMatchObject({ stage: 'done', quality: 'full' });
  expect(saved.processed_bytes).toBe(40_000_000);
  await eventually('the reboot', async () => (await host.view(pod.id)).reboots_done === 1);

  const payload = { stopped: true };
  await host.agent.server.inject({ method: 'PUT', url: `${url}/standing`, payload });
  const state = async () => (await host.engine.inspectContainer(pod.container_id ?? ''))?.status;
  await eventually('the stop', async () => (await state()) === 'exited');
  const stopped = await backUp(host, pod);
  expect(stopped, stopped.log.join('\n')).toMatchObject({ stage: 'done', quality: 'full' });
});
