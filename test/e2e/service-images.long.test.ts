/** Builds the images of central API and validator with the real engine on a base of this host's files, and starts them. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { command, mustRun } from '../fakes/agents/real-host.ts';
import { importImageBase } from '../fakes/engine/image-base.ts';
import { eventually } from '../fakes/eventually.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const RUN_LABEL = `io.podwright.test-run=${inject('testRun')}`;
const HOTKEY = '5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY';
const name = `podwright-service-test-${systemRandom.uuid().slice(0, 8)}`;
const base = `${name}:base`;
const BUILD = { timeoutMs: 300_000, maxOutputBytes: 1024 * 1024 };
const HEALTHY_WITHIN_MS = 90_000;

const SERVICES = {
  central: {
    CENTRAL_GATEWAY_URL: 'http://127.0.0.1:8090',
    CENTRAL_GATEWAY_HOTKEY: HOTKEY,
  },
  validator: {
    VALIDATOR_CENTRAL_URL: 'http://127.0.0.1:8000/api',
    VALIDATOR_CENTRAL_HOTKEY: HOTKEY,
  },
} as const;
type Service = keyof typeof SERVICES;
const services = Object.keys(SERVICES) as Service[];

const imageOf = (service: Service) => `${name}:${service}`;
const containerOf = (service: Service) => `${name}-${service}`;

beforeAll(async () => {
  await importImageBase(base, ROOT);
  const script = join(ROOT, 'systemd/image/build.sh');
  for (const service of services) {
    const words = ['--component', service, '--tag', imageOf(service), '--base', base];
    const built = await runCommand('sh', [script, ...words, '--packages', ''], BUILD);
    if (built.exitCode !== 0) throw new Error(`${built.stdout}${built.stderr}`);
  }
}, BUILD.timeoutMs * 2);

afterAll(async () => {
  for (const service of services) {
    await command('docker', 'rm', '--force', '--volumes', containerOf(service));
  }
  await command('docker', 'rmi', ...services.map(imageOf), base);
});

const inspected = async (of: string, format: string) =>
  (await mustRun('docker', 'inspect', '--format', format, of)).trim();

it.each(services)(
  '%s runs without root and on a read-only root, and becomes healthy',
  async (service) => {
    const container = containerOf(service);
    const variables = Object.entries(SERVICES[service]);
    await mustRun(
      'docker',
      'run',
      '--detach',
      ...['--name', container, '--label', RUN_LABEL, '--network', 'none'],
      ...['--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'],
      ...variables.flatMap(([key, value]) => ['--env', `${key}=${value}`]),
      imageOf(service),
    );
    await eventually(
      'a healthy container',
      async () => {
        const [status, health] = (
          await inspected(container, '{{.State.Status}} {{.State.Health.Status}}')
        ).split(' ');
        if (status !== 'running') throw new Error(await mustRun('docker', 'logs', container));
        return health === 'healthy';
      },
      HEALTHY_WITHIN_MS,
    );
    const inside = (script: string) =>
      command('docker', 'exec', container, 'busybox', 'sh', '-c', script);
    expect((await inside('id -u; id -g')).stdout.trim().split('\n')).toEqual(['10001', '10001']);
    expect((await inside('touch /opt/podwright/changed')).exitCode).not.toBe(0);
    expect((await inside(`stat -c '%a %u' .`)).stdout.trim()).toBe('700 10001');
    await mustRun('docker', 'stop', '--time', '30', container);
    expect(await inspected(container, '{{.State.ExitCode}}')).toBe('0');
  },
);

it.each(services)(
  'the image of %s has its data in a volume, and contains no secret',
  async (service) => {
    const [volumes, environment] = (
      await inspected(imageOf(service), '{{json .Config.Volumes}}\n{{json .Config.Env}}')
    ).split('\n');
    const home = `/var/lib/podwright-${service}`;
    expect(JSON.parse(volumes ?? '')).toEqual({ [home]: {} });
    const set = (JSON.parse(environment ?? '') as string[]).map((each) => each.split('=')[0]);
    expect(set.filter((each) => /SEED|SECRET|KEY|DATABASE|PASSWORD/.test(each ?? ''))).toEqual([]);
    const find = ['--rm', '--entrypoint', '/bin/busybox', imageOf(service), 'find'];
    const files = await mustRun(
      'docker',
      'run',
      ...find,
      home,
      '/opt/podwright',
      '-name',
      '*.seed',
    );
    expect(files.trim()).toBe('');
  },
);

it('the image runs commands of the program', async () => {
  const hotkey = await mustRun('docker', 'run', '--rm', imageOf('validator'), 'hotkey');
  expect(hotkey.trim()).toMatch(/^5\w{47}$/);
});
