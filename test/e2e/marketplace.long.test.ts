/**
 * Kills, restarts, repeated requests and secrets in a marketplace as the program of `npm start`, on the real Docker
 * engine.
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import { logInProvider } from '../../validator/embedded/demo-provider.ts';
import { runSession } from '../docs/sessions.ts';
import { eventually } from '../fakes/eventually.ts';
import { api } from './api.ts';
import {
  containersOf,
  demo,
  followLines,
  freeNode,
  home,
  marketplace,
  type PodRow,
  remove,
  rent,
  restart,
  runMarketplace,
  untilRunning,
} from './marketplace-scene.ts';

runMarketplace();

async function demoProvider() {
  const { portal_url: url, provider } = demo();
  const seed = Buffer.from(readFileSync(provider.seed_file, 'utf8').trim(), 'hex');
  return logInProvider(url, createSigner(seed), systemClock);
}

/** Adds a node through the demo provider, as the README describes. */
async function addNode(): Promise<string> {
  const provider = await demoProvider();
  return provider.ensureNode({ ip: '127.0.0.1', port: 9, gpuType: 'H200', gpuCount: 1 });
}

it('prints commands that rent a pod, log in to it and remove it, exactly as printed', async () => {
  const { account } = demo();
  const [, block = ''] =
    /\(with curl and jq\):\n\n([\s\S]*?)\nCtrl-C/.exec(marketplace().output()) ?? [];
  expect(block.split(account.api_key)).toHaveLength(2);
  const lines = block.split('\n').map((line) => line.length);
  expect(Math.max(...lines)).toBeLessThanOrEqual(120);
  const printed = await runSession([block], home);
  expect(printed).toContain('"machine_name": "NVIDIA');
  expect(printed).toMatch(/^hello from \S+$/m);
  expect(printed.trim().split('\n').at(-1)).toBe('"DELETING"');
}, 120_000);

it('gives a pod a secret as a file, which the engine does not show', async () => {
  const secret = { name: 'token', value: 'V4LUE of the renter' };
  expect((await api(demo(), 'POST', '/secrets', secret)).status).toBe(200);
  const rented = await rent(await freeNode(), {}, { secret_names: ['token'] });
  const { id } = rented.body as PodRow;
  await untilRunning(id);
  const [container] = await containersOf(id);
  const docker = (...args: string[]) => execFileSync('docker', args, { encoding: 'utf8' });
  const shell = ['sh', '-c', 'cat /run/secrets/token; stat -c " %a" /run/secrets/token'];
  expect(docker('exec', container?.id ?? '', ...shell)).toBe('V4LUE of the renter 400\n');
  expect(docker('inspect', container?.id ?? '')).not.toContain('V4LUE');
  await remove(id);
  const logs = readdirSync(join(home, 'logs')).map((name) =>
    readFileSync(join(home, 'logs', name), 'utf8'),
  );
  expect(logs.length).toBeGreaterThan(0);
  expect(logs.join()).not.toContain('V4LUE');
});

it('rents once for repeated requests with one Idempotency-Key', async () => {
  const headers = { 'Idempotency-Key': 'e2e-once' };
  const node = await freeNode();
  const answers = await Promise.all(Array.from({ length: 20 }, () => rent(node, headers)));
  const served = answers.filter((answer) => answer.status === 200);
  const busy = answers.filter((answer) => answer.status === 409);
  expect(served.length + busy.length).toBe(20);
  const ids = new Set(served.map((answer) => (answer.body as PodRow).id));
  expect(ids.size).toBe(1);
  for (const answer of busy) {
    expect(answer.body).toMatchObject({ error: { code: 'idempotency_in_progress' } });
    expect(answer.headers.get('retry-after')).toBe('1');
  }
  const [id = ''] = ids;
  await untilRunning(id);
  expect((await api(demo(), 'GET', '/pods')).body).toHaveLength(1);
  expect(await containersOf(id)).toHaveLength(1);

  const replayed = await rent(node, headers);
  expect(replayed.status).toBe(200);
  expect(replayed.headers.get('idempotent-replayed')).toBe('true');
  const reused = await rent(node, headers, { pod_name: 'another' });
  expect(reused.status).toBe(422);
  expect(reused.body).toMatchObject({ error: { code: 'idempotency_key_reused' } });
  await remove(id);
});

it('manages the same container after its agent was killed', async () => {
  const rented = (await rent(await freeNode())).body as PodRow & { executor_id: string };
  await untilRunning(rented.id);
  const [container] = await containersOf(rented.id);
  const agentOf = () => demo().executors.find(({ id }) => id === rented.executor_id);
  const killed = agentOf()?.pid ?? 0;
  expect(killed).toBeGreaterThan(0);
  process.kill(killed, 'SIGKILL');

  await eventually('agent restarted', () => agentOf()?.pid !== killed && agentOf()?.pid);
  const [line] = await eventually('log lines again', () =>
    followLines(rented.id, 1).catch(() => false as const),
  );
  expect(line).toMatch(/line \d+/);
  expect(await containersOf(rented.id)).toMatchObject([{ id: container?.id, status: 'running' }]);
  expect((await untilRunning(rented.id)).id).toBe(rented.id);
  await remove(rented.id);
});

it('Ctrl-C stops the marketplace and removes its pods; the next start has the same data', async () => {
  const { body } = await rent(await freeNode());
  await untilRunning((body as PodRow).id);
  const before = demo();
  const added = await addNode();
  marketplace().interrupt();
  expect(await marketplace().end('SIGINT')).toBe(0);
  expect(await containersOf((body as PodRow).id)).toEqual([]);

  await restart();
  const after = demo();
  expect(after.account).toEqual(before.account);
  expect(after.executors.map(({ id }) => id)).toEqual(before.executors.map(({ id }) => id));
  expect((await api(after, 'GET', '/pods')).body).toEqual([]);
  const nodes = await (await demoProvider()).listNodes();
  expect(nodes.map(({ id }) => id)).toContain(added);
});
