import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { command, mustRun } from '../../../test/fakes/agents/real-host.ts';
import { createOwnContainers } from './own-containers.ts';

const name = `podwright-own-${systemRandom.uuid().slice(0, 8)}`;
const RUN_LABEL = `io.podwright.test-run=${inject('testRun')}`;
const containers = createOwnContainers({ socketPath: '/var/run/docker.sock', clock: systemClock });
const ids: string[] = [];

/** An image without files. */
async function makeImage(tag: string, changes: readonly string[]): Promise<void> {
  const flags = changes.flatMap((change) => ['--change', change]);
  const bounds = { timeoutMs: 20_000, maxOutputBytes: 10_000, input: '\0'.repeat(1024) };
  const args = ['import', ...flags, '-', `${name}:${tag}`];
  const { exitCode, stderr } = await runCommand('docker', args, bounds);
  if (exitCode !== 0) throw new Error(stderr);
}

beforeAll(async () => {
  await makeImage('1', ['CMD ["one"]', 'ENV VERSION=1', 'LABEL of=one', 'VOLUME /data']);
  await makeImage('2', ['CMD ["two"]', 'ENV VERSION=2', 'LABEL of=two', 'VOLUME /data']);
  await mustRun('docker', 'network', 'create', '--label', RUN_LABEL, name);
  const settings = `--name ${name} --network ${name} --network-alias agent --publish 127.0.0.1::8080
    --env MINE=yes --label mine=yes --label ${RUN_LABEL} --user 1000 --memory 64m
    --restart always --volume /tmp:/mnt:ro`;
  ids.push((await mustRun('docker', 'create', ...settings.split(/\s+/), `${name}:1`)).trim());
});

afterAll(async () => {
  for (const id of ids) await command('docker', 'rm', '--force', '--volumes', id);
  await command('docker', 'network', 'rm', name);
  await command('docker', 'rmi', `${name}:1`, `${name}:2`);
});

async function inspected(id: string) {
  const [found] = JSON.parse(await mustRun('docker', 'inspect', id));
  return found;
}

it('recreates a container from another image with the provider’s settings and the new image’s defaults', async () => {
  const old = await containers.find(name);
  if (old === null) throw new Error('no container');
  const wish = { name: `${name}-next`, image: `${name}:2`, labels: { release: '7' } };
  const id = await containers.createLike(old, wish);
  ids.push(id);
  const [before, after] = [await inspected(old.Id), await inspected(id)];
  expect(after.Config).toMatchObject({
    Cmd: ['two'],
    User: '1000',
    Hostname: id.slice(0, 12),
    Labels: { mine: 'yes', of: 'two', release: '7' },
  });
  const own = after.Config.Env.filter((each: string) => !each.startsWith('PATH='));
  expect(own.toSorted()).toEqual(['MINE=yes', 'VERSION=2']);
  const { PortBindings, Memory, RestartPolicy } = before.HostConfig;
  expect(after.HostConfig).toMatchObject({ PortBindings, Memory, RestartPolicy });
  expect(after.NetworkSettings.Networks[name].Aliases).toContain('agent');
  expect(after.NetworkSettings.Networks[name].Aliases).not.toContain(old.Id.slice(0, 12));
  const mountsOf = ({ Mounts }: { Mounts: { Source: string; Destination: string }[] }) =>
    Mounts.map(({ Source, Destination }) => `${Source} ${Destination}`).toSorted();
  expect(mountsOf(after)).toEqual(mountsOf(before));
  // Repeated, as after a kill.
  expect(await containers.createLike(old, wish)).toBe(id);
});

it('returns null for a missing container', async () => {
  expect(await containers.find(`${name}-nobody`)).toBeNull();
});
