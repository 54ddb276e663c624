import { afterEach, beforeEach, expect, it } from 'vitest';
import { DEFAULT_TEMPLATE, PUBLIC_KEY } from '../../../../test/fakes/scenes/market-fixture.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';

let scene: PodScene;
let market: PodScene['market'];
let node: PodScene['node'];
let account: PodScene['account'];
beforeEach(async () => {
  scene = await createPodScene();
  ({ market, node, account } = scene);
});
afterEach(() => scene.close());

it.each([
  ['UI', 'ui'],
  ['sdk', 'sdk'],
  ['Mcp', 'mcp'],
  ['browser', 'programmatic'],
  [null, 'programmatic'],
])('stores the X-Source header %s of a request with an API key as %s', async (sent, stored) => {
  const headers: Record<string, string> = sent === null ? {} : { 'x-source': sent };
  expect((await market.rent(account, node.id, {}, headers)).body.source).toBe(stored);
});

it('accepts the six members that older clients send, including nulls, and accepts unknown members', async () => {
  const { status, body } = await market.rent(account, node.id, {
    dockerfile_content: null,
    volume_id: null,
    user_public_key: [PUBLIC_KEY],
    initial_port_count: null,
    what_is_this: 1,
  });
  expect(status).toBe(200);
  expect(body.ssh_keys).toEqual([{ id: expect.any(String), name: 'mine', public_key: PUBLIC_KEY }]);
});

it('rents by a Dockerfile instead of a template', async () => {
  const byFile = (text: string, change: object = {}) =>
    market.rent(account, node.id, { template_id: null, dockerfile_content: text, ...change });
  const both = await byFile('FROM a', { template_id: DEFAULT_TEMPLATE });
  expect([both.status, both.body.error.code]).toEqual([400, 'bad_request']);
  const wrong = await byFile('FROM a\nADD http://10.0.0.1/ /x');
  expect(wrong.body.error).toMatchObject({ code: 'bad_request' });
  expect(wrong.body.message).toMatch(/ADD is refused/);

  const host = market.agents.host(node.id);
  host.arrives = 'building';
  const { status, body: pod } = await byFile('FROM ubuntu:24.04\nRUN true');
  expect([status, pod.status, pod.template_id]).toEqual([200, 'PENDING', null]);
  expect(pod.template).toMatchObject({ name: 'Dockerfile', internal_ports: [22, 8000] });
  await market.sync();
  expect(host.specs.get(pod.id)?.image).toEqual({ dockerfile: 'FROM ubuntu:24.04\nRUN true' });
  const seen = () => market.call('GET', `/pods/${pod.id}`, { headers: account.key });
  expect((await seen()).body).toMatchObject({ status: 'PENDING', phase: 'building' });
  const message = 'returned a non-zero code: 1';
  host.change(pod.id, { phase: 'failed', reason: 'BuildFailed', message });
  await market.clock.advance(1_000);
  await market.sync();
  expect((await seen()).body).toMatchObject({
    status: 'CREATION_FAILED',
    reason_code: 'build_failed',
  });
  const events = await market.call('GET', `/pods/${pod.id}/events`, { headers: account.key });
  expect(events.body.at(-1)).toMatchObject({ reason: 'build_failed', error: message });
});

it('records the source and the client version of a rental', async () => {
  const headers = { 'x-source': 'CLI', 'x-lium-client-version': '0.0.37' };
  const { body } = await market.rent(account, node.id, { termination_hours: 2 }, headers);
  expect(body).toMatchObject({
    source: 'cli',
    client_version: '0.0.37',
    created_by_api_key_id: expect.any(String),
    termination_hours: 2,
    removal_scheduled_at: expect.stringMatching(/^2027-01-15T/),
  });
});

it('stores limits', async () => {
  const wish = { max_spend_usd: 2.5, idle_shutdown_minutes: 30, enable_volume_encryption: false };
  const { body } = await market.rent(account, node.id, { gpu_count: 1, ...wish });
  expect(body).toMatchObject({ ...wish, volume_encryption_status: null });
  const seen = await market.call('GET', `/pods/${body.id}`, { headers: account.key });
  expect(seen.body).toMatchObject(wish);
  const plain = await market.rent(account, node.id, { gpu_count: 1, max_spend_usd: null });
  expect(plain.body).toMatchObject({
    max_spend_usd: null,
    idle_shutdown_minutes: null,
    enable_volume_encryption: false,
  });
});

it('ends the only rental on a node, and rejects the request if there are several rentals', async () => {
  const unrent = () =>
    market.call('DELETE', `/executors/${node.id}/rent`, { headers: account.key });
  expect((await unrent()).body.error.code).toBe('pod_not_found');
  await market.rent(account, node.id, { gpu_count: 1 });
  const { id } = (await market.rent(account, node.id, { gpu_count: 1 })).body;
  expect((await unrent()).body.error.code).toBe('bad_request');
  await market.call('DELETE', `/pods/${id}`, { headers: account.key });
  expect((await unrent()).body).toMatchObject({ success: true, status: 'DELETING' });
});
