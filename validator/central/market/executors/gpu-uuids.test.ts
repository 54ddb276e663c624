/** UUIDs identify cards and are therefore visible only to the renter of a card. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  createTestMarket,
  DEFAULT_TEMPLATE,
  type TestMarket,
} from '../../../../test/fakes/scenes/market-fixture.ts';

let market: TestMarket;
let uuids: string[];
let nodeId: string;
beforeAll(async () => {
  market = await createTestMarket();
  nodeId = (await market.verifiedNode({ gpus: 2, minimum: 1 })).id;
  const slots = await market.ports.db.selectFrom('gpu_slots').select('gpu_uuid').execute();
  uuids = slots.map(({ gpu_uuid }) => gpu_uuid);
});
afterAll(() => market.close());

const shownIn = (answer: { status: number; body: unknown }) => {
  expect(answer.status).toBe(200);
  const text = JSON.stringify(answer.body);
  return uuids.filter((uuid) => text.includes(uuid));
};

it('does not show UUIDs of cards in public responses', async () => {
  const { key: headers } = await market.renter();
  expect(uuids).toHaveLength(2);
  const spec = { gpu_type: 'H100', dry_run: true };
  const body = { pod_name: 'x', template_id: DEFAULT_TEMPLATE, ...spec };
  const responses = [
    await market.call('GET', '/executors'),
    await market.call('GET', '/executors', { headers }),
    await market.call('GET', `/executors/${nodeId}/hardware-utilization`, { headers }),
    await market.call('GET', `/executors/${nodeId}/rentability`, { headers }),
    await market.call('POST', '/executors/rent-by-spec', { headers, body }),
  ];
  expect(responses.map(shownIn)).toEqual(responses.map(() => []));
  const [row] = (await market.call('GET', '/executors')).body;
  expect(row.specs.gpu.details).toMatchObject([{ uuid: null }, { uuid: null }]);
});

it('shows renters the UUIDs of their own cards only', async () => {
  const account = await market.renter();
  const { body: pod } = await market.rent(account, nodeId, { gpu_count: 1 });
  const [held = ''] = (
    await market.ports.db
      .selectFrom('gpu_slots')
      .select('gpu_uuid')
      .where('pod_id', '=', pod.id)
      .execute()
  ).map(({ gpu_uuid }) => gpu_uuid);
  expect(shownIn(await market.call('GET', '/pods', { headers: account.key }))).toEqual([held]);
  const own = await market.call('GET', `/pods/${pod.id}`, { headers: account.key });
  expect(shownIn(own)).toEqual([held]);
  const stranger = await market.renter();
  expect(shownIn(await market.call('GET', '/pods', { headers: stranger.key }))).toEqual([]);
});
