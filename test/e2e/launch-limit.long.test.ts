/**
 * The time limit of launches through the program of `npm start`, on the real Docker engine, including a kill of all
 * processes.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createDockerodeEngine } from '../../agent/containers/engine/dockerode-engine.ts';
import { LABELS } from '../../agent/containers/engine/engine.ts';
import { eventually } from '../fakes/eventually.ts';
import { api } from './api.ts';
import {
  freePortFlags,
  type MarketplaceProcess,
  removeHome,
  startMarketplaceProcess,
  temporaryHome,
} from './marketplace-process.ts';

const WITHIN_MS = 240_000;
const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
const home = temporaryHome();
let market: MarketplaceProcess;
let flags: string[];
const start = () => startMarketplaceProcess(home, flags, { CENTRAL_LAUNCH_LIMIT_MINUTES: '2' });

beforeAll(async () => {
  flags = await freePortFlags();
  market = await start();
});

afterAll(async () => {
  const executorIds = market.demo().executors.map((executor) => executor.id);
  await market.end();
  for (const executor of executorIds) {
    const labels = { [LABELS.executor]: executor };
    for (const { id } of await engine.listContainers(labels)) await engine.removeContainer(id);
    for (const { id } of await engine.listNetworks(labels)) await engine.removeNetwork(id);
    for (const { name } of await engine.listVolumes(labels)) await engine.removeVolume(name);
  }
  removeHome(home);
});

async function call(method: string, path: string, body?: object) {
  const answer = await api(market.demo(), method, path, body);
  expect([method, path, answer.status, answer.body]).toEqual([method, path, 200, answer.body]);
  return answer.body;
}

const FAILURES = [
  {
    name: 'exits after it was reached',
    docker_image: 'podwright.local/base',
    docker_image_tag: '1',
    entrypoint: "/bin/sh -c 'sleep 8; exit 4'",
    reason: 'start_failed',
    says: 'exit code 4',
  },
  {
    name: 'has no image',
    docker_image: 'registry.invalid/none',
    reason: 'image_pull_failed',
    says: 'registry.invalid',
  },
];

it('ends launches that do not succeed, even if all processes are killed during the launch', async () => {
  const free = async () => (await call('GET', '/executors')) as { id: string }[];
  const nodes = await eventually('two free nodes', async () => {
    const found = await free();
    return found.length === 2 && found;
  });
  const pods = await Promise.all(
    FAILURES.map(async ({ reason, says, ...template }, index) => {
      const { id: template_id } = (await call('POST', '/templates', template)) as { id: string };
      const body = { pod_name: template.name, template_id };
      const rented = await call('POST', `/executors/${nodes[index]?.id}/rent`, body);
      return { id: (rented as { id: string }).id, reason, says };
    }),
  );
  await market.end('SIGKILL');
  market = await start();
  for (const { id, reason, says } of pods) {
    const failed = await eventually(
      `the end of the launch: ${says}`,
      async () => {
        const pod = (await call('GET', `/pods/${id}`)) as { status: string };
        return pod.status === 'CREATION_FAILED' && pod;
      },
      WITHIN_MS,
    );
    expect(failed).toMatchObject({
      reason_code: reason,
      message: expect.stringMatching(/^Not running after \d+ minutes: /),
    });
    expect(failed).toMatchObject({ message: expect.stringContaining(says) });
    const events = (await call('GET', `/pods/${id}/events`)) as object[];
    expect(events.at(-1)).toMatchObject({ sub_event_type: 'pod-create.failed', reason });
  }
  expect(await call('GET', '/users/me')).toMatchObject({ held: 0 });
  await eventually('two free nodes', async () => (await free()).length === 2);
  for (const { id } of pods) {
    const isGone = async () => (await engine.listContainers({ [LABELS.pod]: id })).length === 0;
    await eventually('the container is removed', isGone, WITHIN_MS);
  }
}, 600_000);
