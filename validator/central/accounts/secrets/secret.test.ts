import { afterEach, beforeEach, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';

const VALUE = 'V4LUE-of-ann\nwith "quotes" and ü';
const KIB = 1_024;

let lines: string[];
let scene: PodScene;
beforeEach(async () => {
  lines = [];
  const out = { write: (line: string) => void lines.push(line) };
  scene = await createPodScene({ log: createLog({ name: 'test', level: 'trace' }, out) });
});
afterEach(() => scene.close());

const put = (name: string, value: string) => scene.call('POST', '/secrets', { name, value });
const list = async () => (await scene.call('GET', '/secrets')).body;
const received = (podId: string) => scene.host.specs.get(podId);

async function tablesWith(text: string): Promise<string[]> {
  const { db } = scene.market.ports;
  const found: string[] = [];
  for (const { name } of await db.introspection.getTables()) {
    const rows = await db
      .selectFrom(name as 'pods')
      .selectAll()
      .execute();
    if (JSON.stringify(rows).includes(text)) found.push(name);
  }
  return found;
}

it('stores secrets sealed, returns no value, and replaces a value by name', async () => {
  const first = await put('token', VALUE);
  expect([first.status, Object.keys(first.body).toSorted()]).toEqual([
    200,
    ['created_at', 'id', 'name', 'updated_at'],
  ]);
  await scene.market.clock.advance(1_000);
  const second = await put('token', 'other');
  expect(second.body).toEqual({ ...first.body, updated_at: expect.any(String) });
  expect(second.body.updated_at).not.toBe(first.body.updated_at);
  await put('a.second_one', VALUE);
  expect((await list()).map(({ name }: { name: string }) => name)).toEqual([
    'a.second_one',
    'token',
  ]);
  expect(JSON.stringify(await list())).not.toContain('V4LUE');
  expect(await tablesWith('V4LUE')).toEqual([]);
  const removed = await scene.call('DELETE', `/secrets/${first.body.id}`);
  expect([removed.status, removed.body.name]).toEqual([200, 'token']);
  expect((await scene.call('DELETE', `/secrets/${first.body.id}`)).status).toBe(404);
  expect(lines.join()).not.toContain('V4LUE');
});

it.each([
  ['name', ''],
  ['name', '.hidden'],
  ['name', '../up'],
  ['name', 'with space'],
  ['name', 'x'.repeat(65)],
  ['value', 'x'.repeat(64 * KIB + 1)],
  ['value', 'ü'.repeat(32 * KIB + 1)],
  ['value', 7],
])('refuses a %s such as %.10s', async (field, value) => {
  const body = { name: 'token', value: 'x', [field]: value };
  expect((await scene.call('POST', '/secrets', body)).status).toBe(422);
  expect(await list()).toEqual([]);
});

it('stores a value of 64 KiB that JSON has to escape, and at most 100 secrets', async () => {
  const value = '\u0001'.repeat(64 * KIB);
  expect((await put('big', value)).status).toBe(200);
  for (let made = 1; made < 100; made += 1) await put(`s${made}`, 'x');
  const refused = await put('one-too-many', 'x');
  expect([refused.status, refused.body.error.code]).toEqual([400, 'bad_request']);
  expect((await put('s1', 'new value')).status).toBe(200);
});

it('sends the named secrets to the agent of the pod only, and never in the stored spec', async () => {
  await put('token', VALUE);
  await put('unused', 'U'.repeat(20));
  const id = await scene.running({ secret_names: ['token', 'token'] });
  expect(received(id)).toMatchObject({
    secret_names: ['token'],
    secrets: [{ name: 'token', value: VALUE }],
  });
  expect(JSON.stringify(received(id))).not.toContain('U'.repeat(20));
  expect(await tablesWith('V4LUE')).toEqual([]);
  const shown = JSON.stringify([await scene.pod(id), await scene.events(id)]);
  expect(shown).not.toContain('V4LUE');
  expect(lines.join()).not.toContain('V4LUE');

  // The pod keeps the value that it was rented with.
  await put('token', 'newer');
  const [secret] = (await list()) as [{ id: string }];
  await scene.call('DELETE', `/secrets/${secret.id}`);
  const switched = await scene.call('PUT', `/pods/${id}`, { description: 'changed' });
  expect(switched.status).toBe(200);
  await scene.market.sync();
  expect(received(id)).toMatchObject({ generation: 2, secrets: [{ value: VALUE }] });
});

it('deletes the copies of a pod with the pod, and all secrets with the account', async () => {
  await put('token', VALUE);
  const id = await scene.running({ secret_names: ['token'] });
  const { db } = scene.market.ports;
  const count = async (table: 'pod_secrets' | 'account_secrets') =>
    (await db.selectFrom(table).selectAll().execute()).length;
  expect([await count('pod_secrets'), await count('account_secrets')]).toEqual([1, 1]);
  await scene.remove(id);
  await scene.market.sync();
  await scene.later();
  expect([await count('pod_secrets'), await count('account_secrets')]).toEqual([0, 1]);
  const { session } = scene.account;
  const gone = await scene.market.call('DELETE', '/users/me', {
    headers: session,
    body: { password: scene.account.password },
  });
  expect(gone.status).toBe(200);
  expect(await count('account_secrets')).toBe(0);
});

it('refuses more secrets than a pod may have, and secrets of other accounts', async () => {
  for (let made = 0; made < 33; made += 1) await put(`s${made}`, 'x');
  const names = Array.from({ length: 33 }, (_, index) => `s${index}`);
  const { market, account, node } = scene;
  const many = await market.rent(account, node.id, { gpu_count: 1, secret_names: names });
  expect([many.status, many.body.error.code]).toEqual([400, 'bad_request']);
  for (const name of ['s1', 's2', 's3']) await put(name, '\u0001'.repeat(64 * KIB));
  const large = { gpu_count: 1, secret_names: ['s1', 's2', 's3'] };
  expect((await market.rent(account, node.id, large)).body.message).toContain('limited');
  const stranger = await market.renter();
  const foreign = await market.rent(stranger, node.id, { gpu_count: 1, secret_names: ['s5'] });
  expect(foreign.status).toBe(400);
  const [secret] = await list();
  const taken = await market.call('DELETE', `/secrets/${secret.id}`, { headers: stranger.key });
  expect(taken.status).toBe(403);
  expect(await market.ports.db.selectFrom('pods').select('id').execute()).toEqual([]);
});
