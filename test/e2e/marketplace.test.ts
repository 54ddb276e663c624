/** The main use of the marketplace: a pod is rented through the program of `npm start`, on the real Docker engine. */
import { execFileSync } from 'node:child_process';
import { isDeepStrictEqual } from 'node:util';
import { expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { createSecureTransport } from '#shared/tls/transport.ts';
import { LABELS } from '../../agent/containers/engine/engine.ts';
import { eventually } from '../fakes/eventually.ts';
import { api } from './api.ts';
import {
  containersOf,
  demo,
  followLines,
  freeNode,
  listedExecutors,
  logIn,
  marketplace,
  networksOf,
  type PodRow,
  rent,
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
  expect(links).toHaveLength(6);
  for (const link of links) {
    const { status } = await fetch(link, { headers: { Accept: 'text/html' } });
    expect([link, status]).toEqual([link, 200]);
  }
});

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
