/** Builds the agent's image with the real engine on a base of this host's files, and starts it. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { VersionInfo } from '#shared/api/agent/inventory.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { VERSION } from '#shared/runtime/version.ts';
import { command, mustRun } from '../fakes/agents/real-host.ts';
import { importImageBase } from '../fakes/engine/image-base.ts';
import { eventually } from '../fakes/eventually.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const RUN_LABEL = `io.podwright.test-run=${inject('testRun')}`;
const executorId = systemRandom.uuid();
const name = `podwright-image-test-${executorId.slice(0, 8)}`;
const [base, image] = [`${name}:base`, `${name}:agent`];
const BUILD = { timeoutMs: 300_000, maxOutputBytes: 1024 * 1024 };

beforeAll(async () => {
  await importImageBase(base, ROOT);
  const script = join(ROOT, 'systemd/image/build.sh');
  const words = ['--tag', image, '--base', base, '--packages', ''];
  const built = await runCommand('sh', [script, ...words], BUILD);
  if (built.exitCode !== 0) throw new Error(`${built.stdout}${built.stderr}`);
}, BUILD.timeoutMs);

afterAll(async () => {
  await command('docker', 'rm', '--force', '--volumes', name);
  await command('docker', 'rmi', image, base);
});

it('the image contains only the release, and its agent responds', async () => {
  const variables = {
    AGENT_EXECUTOR_ID: executorId,
    AGENT_GPU: 'none',
    AGENT_HOST: '127.0.0.1',
    AGENT_TLS: 'off',
  };
  const flags = Object.entries(variables).flatMap(([key, value]) => ['--env', `${key}=${value}`]);
  const place = ['--name', name, '--label', RUN_LABEL, '--network', 'none'];
  await mustRun('docker', 'run', '--detach', ...place, ...flags, image);
  const get = (path: string) =>
    command('docker', 'exec', name, 'busybox', 'wget', '-qO-', `http://127.0.0.1:8080${path}`);
  await eventually('an answer', async () => (await get('/healthz')).exitCode === 0);
  const version = VersionInfo.parse(JSON.parse((await get('/version')).stdout));
  expect(version).toMatchObject({ version: VERSION, executor_id: executorId });
  const list =
    'find . -name "*.d.ts" -o -path "./[asv]*" -name "*.test.ts"; ls; ls -d node_modules/[vz]*';
  const shell = ['exec', '--workdir', '/opt/podwright', name, 'busybox', 'sh', '-c'];
  const inside = await mustRun('docker', ...shell, list);
  expect(inside.trim().split('\n')).toEqual([
    ...['LICENSE', 'README.md', 'agent', 'node_modules', 'package-lock.json', 'package.json'],
    ...['shared', 'systemd', 'validator'],
    'node_modules/zod',
  ]);
});
