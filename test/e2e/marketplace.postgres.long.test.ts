/** The main use of the marketplace on PostgreSQL: `npm start` with CENTRAL_DATABASE rents a real container. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createDockerodeEngine } from '../../agent/containers/engine/dockerode-engine.ts';
import { LABELS } from '../../agent/containers/engine/engine.ts';
import { eventually } from '../fakes/eventually.ts';
import { createPostgresDatabase } from '../fakes/scenes/central-database.ts';
import { api } from './api.ts';
import {
  freePortFlags,
  type MarketplaceProcess,
  removeHome,
  startMarketplaceProcess,
  temporaryHome,
} from './marketplace-process.ts';

const engine = createDockerodeEngine({ socketPath: '/var/run/docker.sock', clock: systemClock });
const home = temporaryHome();
let flags: string[];
let environment: Record<string, string>;
let market: MarketplaceProcess;
let executorIds: string[] = [];

beforeAll(async () => {
  flags = [...(await freePortFlags()), '--agents', '1'];
  environment = { CENTRAL_DATABASE: await createPostgresDatabase() };
  market = await startMarketplaceProcess(home, flags, environment);
  executorIds = market.demo().executors.map((executor) => executor.id);
});

afterAll(async () => {
  await market?.end();
  for (const executor of executorIds) {
    const labels = { [LABELS.executor]: executor };
    for (const container of await engine.listContainers(labels)) {
      await engine.removeContainer(container.id);
    }
    for (const network of await engine.listNetworks(labels)) await engine.removeNetwork(network.id);
    for (const { name } of await engine.listVolumes(labels)) await engine.removeVolume(name);
  }
  removeHome(home);
});

type PodRow = { id: string; status: string; ssh_connect_cmd: string | null };

const containersOf = (podId: string) => engine.listContainers({ [LABELS.pod]: podId });

async function rent(key: string): Promise<PodRow> {
  const demo = market.demo();
  const body = { pod_name: 'e2e', template_id: demo.templates[0]?.id };
  const path = `/executors/${executorIds[0]}/rent`;
  const answer = await api(demo, 'POST', path, body, { 'Idempotency-Key': key });
  expect(answer.status).toBe(200);
  return answer.body as PodRow;
}

async function untilRunning(id: string): Promise<void> {
  await eventually(`pod ${id} running`, async () => {
    const pod = (await api(market.demo(), 'GET', `/pods/${id}`)).body as PodRow;
    return pod.status === 'RUNNING' && pod.ssh_connect_cmd !== null;
  });
}

it('rents, runs and removes a real container, and stores no central data in its folder', async () => {
  const { id } = await rent('e2e-postgres');
  await untilRunning(id);
  expect(await containersOf(id)).toMatchObject([{ status: 'running' }]);
  expect((await rent('e2e-postgres')).id).toBe(id);
  expect((await api(market.demo(), 'POST', `/pods/${id}/reboot`, {})).status).toBe(200);
  await untilRunning(id);
  expect((await api(market.demo(), 'DELETE', `/pods/${id}`)).status).toBe(200);
  await eventually('container removed', async () => (await containersOf(id)).length === 0);
  await eventually(
    'executor listed again',
    async () => ((await api(market.demo(), 'GET', '/executors')).body as unknown[]).length === 1,
  );
  expect(existsSync(join(home, 'central.db'))).toBe(false);
  const log = readFileSync(join(home, 'logs', 'marketplace.log'), 'utf8');
  expect(market.output() + log).not.toContain(environment['CENTRAL_DATABASE']);
});

it('restores the marketplace and its pod after kill -9', async () => {
  const { id } = await rent('e2e-killed');
  const before = market.demo();
  await market.end('SIGKILL');
  market = await startMarketplaceProcess(home, flags, environment);
  expect(market.demo().account).toEqual(before.account);
  expect(market.demo().executors.map((executor) => executor.id)).toEqual(executorIds);
  await untilRunning(id);
  expect(await containersOf(id)).toHaveLength(1);
  market.interrupt();
  expect(await market.end('SIGINT')).toBe(0);
  expect(await containersOf(id)).toEqual([]);
});

it('rejects --fresh on a database that is in use', async () => {
  const starting = startMarketplaceProcess(home, [...flags, '--fresh'], environment);
  await expect(starting).rejects.toThrow(/--fresh does not empty the PostgreSQL database/);
});
