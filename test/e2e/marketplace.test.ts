/** The main use of the marketplace: a pod is rented through the program of `npm start`, on the real Docker engine. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createSigner } from '#shared/signing/sr25519.ts';
import { createSecureTransport } from '#shared/tls/transport.ts';
import { LABELS } from '../../agent/containers/engine/engine.ts';
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
  listedExecutors,
  logIn,
  marketplace,
  networksOf,
  type PodRow,
  remove,
  rent,
  restart,
  routesAnsweredFor,
  runMarketplace,
  untilRunning,
  volumesOf,
} from './marketplace-scene.ts';

runMarketplace();

it('prints links that respond with 200 to a browser', async () => {
  const links = [
    ...marketplace()
      .output()
      .matchAll(/^ {2}\w+ +(https?:\S+)$/gm),
  ].map(([, url = '']) => url);
  expect(links).toHaveLength(4);
  for (const link of links) {
    const { status } = await fetch(link, { headers: { Accept: 'text/html' } });
    expect([link, status]).toEqual([link, 200]);
  }
});

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

it('a new account signs up, confirms its address with the mail in the outbox and gets the credit', async () => {
  const values = demo();
  const account = { email: 'newcomer@example.com', password: 'correct horse' };
  const { body: signedUp } = await api(values, 'POST', '/users', account);
  const { api_key: key } = signedUp as { api_key: string };
  const me = async () =>
    (await api(values, 'GET', '/users/me', undefined, { 'X-API-Key': key })).body;
  expect(await me()).toMatchObject({ email_verified: false, balance: 0 });
  const { body: outbox } = await api(values, 'GET', '/_local/outbox');
  const mail = (outbox as { to: string; text: string }[]).find(({ to }) => to === account.email);
  const token = /^[A-Za-z0-9_-]{43}$/m.exec(mail?.text ?? '')?.[0];
  expect((await api(values, 'POST', '/auth/verify-email', { token })).status).toBe(200);
  expect(await me()).toMatchObject({ email_verified: true, balance: 1_000 });
});

it('starts, rents, runs, streams, reboots and removes a real container', async () => {
  const ids = demo().executors.map((executor) => executor.id);
  // A node is listed again when its agent has removed the pod of an earlier test.
  await eventually('all nodes are listed', async () => {
    const listed = await listedExecutors();
    return isDeepStrictEqual(listed.map((row) => row.id).toSorted(), ids.toSorted());
  });

  const requestId = 'the-request-of-this-rent';
  const rented = await rent(await freeNode(), { 'X-Request-Id': requestId });
  expect(rented.status).toBe(200);
  const { id } = rented.body as PodRow;
  expect(rented.body).toMatchObject({ success: true, pod_id: id, status: 'PENDING' });
  const pod = await untilRunning(id);
  const ssh = pod.ports_mapping['22'];
  expect(pod.ssh_connect_cmd).toBe(`ssh root@127.0.0.1 -p ${ssh}`);
  expect(Object.keys(pod.ports_mapping).toSorted()).toEqual(['22', '8000']);

  expect(routesAnsweredFor(requestId)).toEqual([
    'POST /api/executors/:executor_uuid/rent',
    'PUT /v1/executors/:executorId/v1/pods/:id',
    'PUT /v1/pods/:id',
  ]);

  // Without a retry: a pod that is shown as running accepts logins.
  const greeting = logIn(pod.ssh_connect_cmd ?? '', 'echo "$USER in $(pwd)"');
  expect(greeting).toBe('root in /root\n');

  const [container] = await containersOf(id);
  expect(container).toMatchObject({
    status: 'running',
    labels: { [LABELS.managed]: '1', [LABELS.pod]: id, [LABELS.kind]: 'pod' },
  });
  const shown = execFileSync('docker', [
    'ps',
    '--filter',
    `label=${LABELS.pod}=${id}`,
    '--format',
    '{{.ID}}',
  ]);
  expect(container?.id.startsWith(shown.toString().trim())).toBe(true);

  const page = await fetch(`http://127.0.0.1:${pod.ports_mapping['8000']}/`);
  expect(page.status).toBe(200);
  const lines = await followLines(id, 3);
  expect(lines).toEqual(Array(3).fill(expect.stringMatching(/line \d+\n$/)));

  expect((await listedExecutors()).length).toBe(ids.length - 1);

  const rebooted = await api(demo(), 'POST', `/pods/${id}/reboot`, {});
  expect(rebooted.status).toBe(200);
  await eventually(
    'container started again',
    async () => ((await containersOf(id))[0]?.startedMs ?? 0) > (container?.startedMs ?? 0),
    20_000,
  );
  const again = await untilRunning(id);
  expect(again.ports_mapping).toEqual(pod.ports_mapping);
  expect((await containersOf(id)).map((found) => found.id)).toEqual([container?.id]);

  const deleted = await api(demo(), 'DELETE', `/pods/${id}`);
  expect(deleted.body).toMatchObject({ success: true, status: 'DELETING' });
  expect((await api(demo(), 'GET', '/pods')).body).toEqual([]);
  await eventually(
    'container and network removed',
    async () => {
      const left = await Promise.all([containersOf(id), networksOf(id), volumesOf(id)]);
      return left.flat().length === 0;
    },
    20_000,
  );
  await eventually(
    'executor listed again',
    async () => (await listedExecutors()).length === ids.length,
    20_000,
  );
  await expect(fetch(`http://127.0.0.1:${pod.ports_mapping['8000']}/`)).rejects.toThrow();
});

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

it('rejects agent requests without a signature', async () => {
  const [executor] = demo().executors;
  const agent = createSecureTransport({ trust: 'anybody', clock: systemClock });
  for (const [method, path] of [
    ['GET', '/v1/pods'],
    ['GET', '/v1/inventory'],
    ['DELETE', '/v1/pods/11111111-1111-4111-8111-111111111111'],
    ['PUT', '/v1/pods/11111111-1111-4111-8111-111111111111'],
  ] as const) {
    const response = await agent.fetch(new URL(`${executor?.agent_url}${path}`), {
      method,
      headers: method === 'PUT' ? { 'content-type': 'application/json' } : {},
      ...(method === 'PUT' ? { body: '{}' } : {}),
    });
    expect([method, path, response.status]).toEqual([method, path, 401]);
  }
  for (const path of ['/healthz', '/readyz', '/version']) {
    const url = new URL(`${executor?.agent_url}${path}`);
    expect((await agent.fetch(url, { method: 'GET', headers: {} })).status).toBe(200);
  }
  agent.close();
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
