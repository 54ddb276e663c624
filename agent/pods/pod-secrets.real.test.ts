/** Tests secrets of pods on the real engine: mode, owner and place of the files, and where their content must not be. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  command,
  createRealHost,
  mustRun,
  type RealHost,
} from '../../test/fakes/agents/real-host.ts';
import { eventually } from '../../test/fakes/eventually.ts';

const VALUE = 'V4LUE-of-a-secret with spaces';

let host: RealHost;
beforeAll(async () => {
  host = await createRealHost();
});
afterAll(() => host.close());

it('gives a pod its secrets as files that survive restarts and that the engine does not show', async () => {
  const secrets = [{ name: 'token', value: VALUE }];
  const pod = await host.launch('sleep 600', { secret_names: ['token'], secrets } as object);
  const id = pod.container_id ?? '';
  const inside = (script: string) => mustRun('docker', 'exec', id, 'sh', '-c', script);
  const facts = 'cat /run/secrets/token; stat -c " %a %u:%g" /run/secrets/token';
  expect(await inside(facts)).toBe(`${VALUE} 400 0:0\n`);
  expect(await inside('grep " /run/secrets " /proc/mounts')).toMatch(
    /^tmpfs \/run\/secrets tmpfs ro/,
  );
  expect(
    (await command('docker', 'exec', id, 'sh', '-c', 'echo x > /run/secrets/y')).exitCode,
  ).not.toBe(0);

  const shown = await Promise.all([
    mustRun('docker', 'inspect', id),
    mustRun('docker', 'logs', id),
    inside('cat /proc/1/environ /proc/1/cmdline'),
    mustRun('docker', 'image', 'inspect', 'podwright.local/base:1'),
  ]);
  expect(shown.join()).not.toContain('V4LUE');

  await mustRun('docker', 'kill', id);
  await eventually('the pod runs again', async () => {
    const seen = await host.view(pod.id);
    return seen.phase === 'running' && seen.restart_count > 0;
  });
  expect(await inside(facts)).toBe(`${VALUE} 400 0:0\n`);
  await host.remove(pod.id);
});
