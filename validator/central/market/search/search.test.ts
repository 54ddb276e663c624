import { afterEach, beforeEach, expect, it } from 'vitest';
import { createFakeBackupStorage } from '../../../../test/fakes/external/fake-backup-storage.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import { createTestMarket, type TestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { huidOf } from '../executors/executor-response.ts';

let market: TestMarket;
let account: TestAccount;
beforeEach(async () => {
  market = await createTestMarket({ backupStorage: createFakeBackupStorage() });
  account = await market.renter();
});
afterEach(() => market.close());

async function find(q: string, by = account) {
  const path = `/users/me/search?q=${encodeURIComponent(q)}`;
  const { status, body } = await market.call('GET', path, { headers: by.key });
  expect(status).toBe(200);
  return body;
}
const idsOf = (rows: { id: string }[]) => rows.map(({ id }) => id);

it("finds the account's pods, volumes and templates by a part of the name and by id", async () => {
  const node = await market.verifiedNode({ gpus: 2, minimum: 1 });
  const body = { pod_name: 'Train_100%', gpu_count: 1 };
  const pod = (await market.rent(account, node.id, body)).body;
  const create = async (path: string, sent: Record<string, unknown>) =>
    (await market.call('POST', path, { headers: account.key, body: sent })).body.id;
  const volume = await create('/volumes', { name: 'training data' });
  const template = await create('/templates', { name: 'Trainer', docker_image: 'me/private' });

  const found = await find('TRAIN');
  expect([idsOf(found.pods), idsOf(found.volumes), idsOf(found.templates)]).toEqual([
    [pod.id],
    [volume],
    [template],
  ]);
  expect(idsOf((await find('n_100%')).pods)).toEqual([pod.id]);
  expect((await find('n%100')).pods).toEqual([]);
  expect((await find(volume)).volumes).toEqual([{ id: volume, name: 'training data' }]);
  expect(idsOf((await find('me/private')).templates)).toEqual([template]);

  const stranger = await market.renter();
  expect(await find('train', stranger)).toEqual({
    pods: [],
    volumes: [],
    templates: [],
    nodes: [],
  });
  expect((await find(pod.id, stranger)).pods).toEqual([]);
});

it('finds ended pods after live pods', async () => {
  const node = await market.verifiedNode({ gpus: 2, minimum: 1 });
  const rent = async () =>
    (await market.rent(account, node.id, { pod_name: 'same', gpu_count: 1 })).body.id;
  const ended = await rent();
  await market.sync();
  await market.call('DELETE', `/pods/${ended}`, { headers: account.key });
  await market.sync();
  const live = await rent();
  const { pods } = await find('same');
  expect(idsOf(pods)).toEqual([live, ended]);
  expect(pods[1].status).toBe('DELETED');
});

it('finds offered nodes by id, readable name and address, and no others', async () => {
  const node = await market.verifiedNode();
  const waiting = await market.addNode();
  const [row] = (await market.call('GET', '/executors')).body;
  const expected = [
    {
      id: node.id,
      huid: huidOf(node.id),
      machine_name: row.machine_name,
      executor_ip_address: row.executor_ip_address,
    },
  ];
  for (const q of [node.id.toUpperCase(), huidOf(node.id), row.executor_ip_address]) {
    expect([q, (await find(q)).nodes]).toEqual([q, expected]);
  }
  expect((await find(waiting.id)).nodes).toEqual([]);
  expect((await market.call('GET', '/users/me/search?q=x')).status).toBe(401);
});
