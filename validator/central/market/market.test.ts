import { afterEach, beforeEach, expect, it } from 'vitest';
import { createTestMarket, type TestMarket } from '../../../test/fakes/scenes/market-fixture.ts';

let market: TestMarket;

beforeEach(async () => {
  market = await createTestMarket();
});
afterEach(() => market.close());

it('lists a verified node, rents it out, and lists it again after the pod was deleted', async () => {
  const node = await market.addNode();
  expect((await market.call('GET', '/executors')).body).toEqual([]);
  expect((await market.report(node)).body).toMatchObject({ success: true, reason_code: null });

  const [row] = (await market.call('GET', '/executors')).body;
  expect(row).toMatchObject({
    id: node.id,
    machine_name: 'NVIDIA H100 80GB HBM3',
    gpu_type: 'H100',
    gpu_count: 2,
    available_gpu_count: 2,
    price_per_gpu: 2.2,
    price_per_hour: 4.4,
    simulated: true,
  });

  const account = await market.renter();
  const rented = await market.rent(account, node.id);
  expect(rented.body).toMatchObject({
    success: true,
    status: 'PENDING',
    phase: 'queued',
    gpu_count: '2',
    price: 4.4,
    ssh_connect_cmd: null,
    ports_mapping: {},
    source: 'programmatic',
  });
  expect(rented.body.pod_id).toBe(rented.body.id);
  expect((await market.call('GET', '/executors')).body).toEqual([]);

  await market.sync();
  const pods = (await market.call('GET', '/pods', { headers: account.key })).body;
  expect(pods).toHaveLength(1);
  expect(pods[0]).toMatchObject({
    status: 'RUNNING',
    phase: 'ready',
    ssh_connect_cmd: 'ssh root@127.0.0.1 -p 31000',
    ports_mapping: { 22: 31_000, 8000: 31_001 },
  });

  const path = `/pods/${rented.body.id}`;
  const removed = await market.call('DELETE', path, { headers: account.key });
  expect(removed.status).toBe(200);
  expect(removed.body).toMatchObject({ status: 'DELETING', success: true });
  expect((await market.call('GET', '/pods', { headers: account.key })).body).toEqual([]);

  await market.sync();
  expect((await market.call('GET', path, { headers: account.key })).body).toMatchObject({
    error: { code: 'pod_not_found' },
    details: { reason_code: 'user_initiated' },
  });
  expect((await market.call('GET', '/executors')).body).toHaveLength(1);
  const events = (await market.call('GET', `${path}/events`, { headers: account.key })).body;
  expect(events.map((event: { sub_event_type: string }) => event.sub_event_type)).toEqual([
    'pod-rent.success',
    'pod-create.success',
    'pod-delete.requested',
    'pod-delete.success',
  ]);
});
