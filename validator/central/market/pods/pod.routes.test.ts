import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import {
  createTestMarket,
  DEFAULT_TEMPLATE,
  type TestMarket,
} from '../../../../test/fakes/scenes/market-fixture.ts';

const NOWHERE = '00000000-0000-4000-8000-000000000000';

let market: TestMarket;
let account: TestAccount;
let podId: string;
let nodeId: string;

beforeEach(async () => {
  market = await createTestMarket();
  const node = await market.verifiedNode({ gpus: 4, minimum: 1 });
  account = await market.renter();
  nodeId = node.id;
  podId = (await market.rent(account, nodeId, { gpu_count: 1, pod_name: 'one' })).body.id;
});
afterEach(() => market.close());

const ROUTES = [
  ['GET', ''],
  ['DELETE', ''],
  ['PATCH', ''],
  ['PUT', ''],
  ['PUT', '/switch-template'],
  ['POST', '/reboot'],
  ['POST', '/like'],
  ['POST', '/feedback'],
  ['POST', '/schedule-removal'],
  ['DELETE', '/schedule-removal'],
  ['GET', '/events'],
] as const;

const BODIES: Record<string, Record<string, string | number>> = {
  '/schedule-removal': { removal_scheduled_at: '2030-01-01' },
  '/switch-template': { template_id: NOWHERE },
  '/feedback': { rating: 5 },
};

describe.each(ROUTES)('%s /pods/{id}%s', (method, action) => {
  const body = BODIES[action] ?? { pod_name: 'x' };
  const sent = ['POST', 'PUT', 'PATCH'].includes(method) ? { body } : {};

  it('returns 404 for a pod of another account and for a missing pod', async () => {
    const stranger = await market.signUp();
    const foreign = await market.call(method, `/pods/${podId}${action}`, {
      headers: stranger.key,
      ...sent,
    });
    const absent = await market.call(method, `/pods/${NOWHERE}${action}`, {
      headers: account.key,
      ...sent,
    });
    for (const { status, body: refusal } of [foreign, absent]) {
      expect(status).toBe(404);
      expect(refusal.error.code).toBe('pod_not_found');
      expect(refusal.details).toBeNull();
    }
  });

  it('checks the credential first, then the form of the id', async () => {
    expect((await market.call(method, `/pods/nonsense${action}`, sent)).status).toBe(401);
    const headers = account.key;
    expect(
      (await market.call(method, `/pods/nonsense${action}`, { headers, ...sent })).status,
    ).toBe(422);
  });
});

it("lists the caller's pods, newest first, with the filters of nodes", async () => {
  await market.clock.advance(1);
  const dear = await market.verifiedNode({
    gpus: 2,
    price: 3,
    gpuType: 'NVIDIA H200',
    name: 'NVIDIA H200',
  });
  const second = (await market.rent(account, dear.id)).body.id;
  await market.call('POST', `/pods/${podId}/like`, { headers: account.key });
  const ids = async (query: string) =>
    (await market.call('GET', `/pods?${query}`, { headers: account.key })).body.map(
      (pod: { id: string }) => pod.id,
    );
  expect(await ids('')).toEqual([second, podId]);
  expect(await ids('only_favorites=true')).toEqual([podId]);
  expect(await ids('only_favorites=false')).toHaveLength(2);
  expect(await ids('machine_names=NVIDIA%20H200')).toEqual([second]);
  expect(await ids('price_lte=2.5')).toEqual([podId]);
  expect(await ids('gpu_count_gte=2')).toEqual([second]);
  expect(await ids('bookmarked=true')).toEqual([]);
  const far = await market.call('GET', '/pods?max_distance_mile=1', { headers: account.key });
  expect(far.status).toBe(422);
  const stranger = await market.signUp();
  expect((await market.call('GET', '/pods', { headers: stranger.key })).body).toEqual([]);
});

it('toggles a like of the pod', async () => {
  const like = () => market.call('POST', `/pods/${podId}/like`, { headers: account.key });
  expect((await like()).body.is_favorite).toBe(true);
  expect((await like()).body.is_favorite).toBe(false);
});

it('applies concurrent likes one by one, and rejects a like for an ended pod', async () => {
  const headers = account.key;
  const like = () => market.call('POST', `/pods/${podId}/like`, { headers });
  const favorites = async () =>
    (await market.call('GET', '/pods?only_favorites=true', { headers })).body.length;
  const answers = await Promise.all(Array.from({ length: 21 }, like));
  expect(answers.filter(({ body }) => body.is_favorite)).toHaveLength(11);
  expect(await favorites()).toBe(1);
  await Promise.all(Array.from({ length: 21 }, like));
  expect(await favorites()).toBe(0);
  await market.call('DELETE', `/pods/${podId}`, { headers });
  await market.sync();
  const late = await like();
  expect([late.status, late.body.error.code]).toEqual([404, 'pod_not_found']);
});

it('rejects a like for a pod that is being removed', async () => {
  await market.sync();
  market.agents.host(nodeId).removesAtOnce = false;
  const headers = account.key;
  await market.call('DELETE', `/pods/${podId}`, { headers });
  const late = await market.call('POST', `/pods/${podId}/like`, { headers });
  expect([late.status, late.body.error.code]).toEqual([400, 'pod_state_conflict']);
});

it('accepts ids in upper case, in path and body', async () => {
  const headers = account.key;
  const { body } = await market.call('GET', `/pods/${podId.toUpperCase()}`, { headers });
  expect(body.id).toBe(podId);
  const path = `/executors/${nodeId.toUpperCase()}/rent`;
  const sent = { pod_name: 'two', gpu_count: 1, template_id: DEFAULT_TEMPLATE.toUpperCase() };
  const rented = await market.call('POST', path, { headers, body: sent });
  expect(rented.body).toMatchObject({ executor_id: nodeId, template_id: DEFAULT_TEMPLATE });
  const estimate = `template_id=${sent.template_id}&executor_id=${nodeId.toUpperCase()}`;
  const found = await market.call('GET', `/executors/deployment-estimate?${estimate}`, { headers });
  expect(found.status).toBe(200);
  const template = await market.call('GET', `/templates/${sent.template_id}`);
  expect(template.body.id).toBe(DEFAULT_TEMPLATE);
});

it('returns one pod with all fields', async () => {
  const { body } = await market.call('GET', `/pods/${podId}`, { headers: account.key });
  expect(body).toMatchObject({
    id: podId,
    pod_name: 'one',
    gpu_name: 'NVIDIA H100 80GB HBM3',
    gpu_count: '1',
    cpu_name: 'Test CPU',
    cpu_count: 8,
    ram_total: Math.floor(256 * 1024 * 1024 * 0.9 * 0.25),
    template: { docker_image: 'podwright.local/base', internal_ports: expect.any(Array) },
    executor: { gpu_count: 4, price_per_gpu: 2.2, active: true },
    executor_status: { logs: [] },
    last_event: { sub_event_type: 'pod-rent.success', pod_name: 'one' },
    backup_config: null,
    created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}$/),
  });
  expect(body).not.toHaveProperty('deleted_at');
});

it("keeps its price when the node's price changes", async () => {
  await market.ports.db.updateTable('executors').set({ price_uusd_per_gpu_hour: 9 }).execute();
  const { body } = await market.call('GET', `/pods/${podId}`, { headers: account.key });
  expect(body).toMatchObject({ price: 2.2, executor: { price_per_gpu: 2.2 } });
});

it('rejects a reboot with an id that no volume has', async () => {
  await market.sync();
  const body = { volume_id: NOWHERE };
  const path = `/pods/${podId}/reboot`;
  const refused = await market.call('POST', path, { headers: account.key, body });
  expect(refused.body.error.code).toBe('volume_not_found');
  const explicitNull = { volume_id: null };
  const rebooted = await market.call('POST', path, { headers: account.key, body: explicitNull });
  expect(rebooted.body.status).toBe('REBOOT_PENDING');
});
