import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { engineProblem, requireEngine } from './engine-problem.ts';

const ports = { clock: systemClock, user: 'ann' };
const place = { socket: '/run/docker.sock', user: 'ann', isChosen: false };

it.each([
  ['connect EACCES /run/docker.sock', 'sudo usermod -aG docker ann'],
  ['connect ENOENT /run/docker.sock', 'sudo sh systemd/prerequisites.sh'],
  ['connect ECONNREFUSED /run/docker.sock', 'or set DOCKER_HOST to the socket of another engine'],
  ['status 500', 'does not respond (status 500): restart it'],
])('a ping that fails with "%s" gets the remedy "%s"', (cause, remedy) => {
  expect(engineProblem(cause, place)).toContain(remedy);
});

it('names DOCKER_HOST as a remedy if it selects the engine', () => {
  for (const cause of ['EACCES', 'ENOENT', 'status 500'])
    expect(engineProblem(cause, { ...place, isChosen: true })).toContain('or unset DOCKER_HOST');
});

it('rejects an engine without a socket, and one on another machine', async () => {
  await expect(requireEngine({ DOCKER_HOST: 'unix:///missing.sock' }, ports)).rejects.toThrow(
    'there is no Docker engine at /missing.sock: start that engine, or unset DOCKER_HOST',
  );
  await expect(requireEngine({ DOCKER_HOST: 'tcp://10.0.0.1:2375' }, ports)).rejects.toThrow(
    'DOCKER_HOST=tcp://10.0.0.1:2375 is not supported',
  );
});

it('rejects an engine that does not respond within four seconds', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-engine-'));
  const socket = join(folder, 'docker.sock');
  const silent = createServer(() => undefined);
  await new Promise<void>((resolve) => silent.listen(socket, resolve));
  try {
    const clock = createManualClock();
    const checked = expect(
      requireEngine({ DOCKER_HOST: `unix://${socket}` }, { clock, user: 'ann' }),
    ).rejects.toThrow('does not respond (no answer in 4 s)');
    await clock.advance(4_000);
    await checked;
  } finally {
    await new Promise((resolve) => silent.close(resolve));
    rmSync(folder, { recursive: true });
  }
});
