import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TestAccount } from '../../../test/fakes/central-fixture.ts';
import {
  type AddedNode,
  createTestMarket,
  DEFAULT_TEMPLATE,
  PUBLIC_KEY,
  type TestMarket,
} from '../../../test/fakes/market-fixture.ts';

import { testInventory } from '../../../test/fixtures/host-inventory.ts';

const PRIVATE_KEY =
  '-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----';
const NOWHERE = '00000000-0000-4000-8000-000000000000';

let market: TestMarket;
let node: AddedNode;
let account: TestAccount;

beforeEach(async () => {
  market = await createTestMarket();
  node = await market.verifiedNode({ gpus: 2, minimum: 1 });
  account = await market.renter();
});
afterEach(() => market.close());

async function holds(): Promise<number[]> {
  const rows = await market.ports.db.selectFrom('pods').select('hold_uusd').execute();
  return rows.map((row) => row.hold_uusd);
}

async function setBalance(micro: number): Promise<void> {
  await market.ports.db.updateTable('accounts').set({ balance_uusd: micro }).execute();
}

describe('refusals, each before those after it', () => {
  it('checks the credential before the key, the key before the body, the body before the node', async () => {
    const badKey = { 'idempotency-key': 'not valid!' };
    const nobody = { key: {} } as unknown as TestAccount;
    const codes = [];
    for (const [who, headers, body] of [
      [nobody, badKey, { pod_name: '' }],
      [account, badKey, { pod_name: '' }],
      [account, {}, { pod_name: '' }],
      [account, {}, {}],
    ] as const) {
      codes.push((await market.rent(who, NOWHERE, body, headers)).body.error.code);
    }
    expect(codes).toEqual([
      'unauthorized',
      'idempotency_key_invalid',
      'validation_error',
      'node_not_found',
    ]);
  });

  it('takes all wrongs together and names the first, then the next', async () => {
    const { db } = market.ports;
    const wrong = { gpu_count: 3, template_id: NOWHERE, termination_hours: 0 };
    await db.deleteFrom('ssh_keys').execute();
    await db.updateTable('accounts').set({ email_verified_at: null, balance_uusd: 0 }).execute();
    await db.updateTable('executors').set({ state: 'failed', paused: 1 }).execute();
    await db.updateTable('providers').set({ banned_at: 1 }).execute();

    const code = async (body: Record<string, unknown> = wrong) =>
      (await market.rent(account, node.id, body)).body.error.code;
    expect(await code()).toBe('provider_banned');
    await db.updateTable('providers').set({ banned_at: null }).execute();
    expect(await code()).toBe('node_paused_by_provider');
    await db.updateTable('executors').set({ paused: 0 }).execute();
    expect(await code()).toBe('node_not_verified');
    await db.updateTable('executors').set({ state: 'verified' }).execute();
    expect(await code()).toBe('gpu_count_invalid');
    expect(await code({ ...wrong, gpu_count: 1 })).toBe('template_not_found');
    const good = { gpu_count: 1, template_id: DEFAULT_TEMPLATE };
    expect(await code({ ...good, termination_hours: 0 })).toBe('bad_request');
    const keyed = { ...good, user_public_key: PUBLIC_KEY };
    expect(await code({ ...keyed, termination_hours: 0 })).toBe('ttl_invalid');
    expect(await code({ ...keyed, termination_hours: 720.5 })).toBe('ttl_invalid');
    expect(await code(keyed)).toBe('email_not_verified');
    await db.updateTable('accounts').set({ email_verified_at: 1 }).execute();
    expect(await code(keyed)).toBe('insufficient_balance');
    expect(await holds()).toEqual([]);
  });

  it('says what is missing in the words that clients parse', async () => {
    await setBalance(100_000);
    const { status, body } = await market.rent(account, node.id);
    expect(status).toBe(403);
    expect(body.message).toBe(
      'Insufficient balance. This node costs $4.40/hour, so renting it requires at least $1.10 ' +
        '(15 minutes of runtime). Your balance is $0.10.',
    );
  });

  it('allows a balance exactly at the floor, and counts what other pods hold', async () => {
    await setBalance(550_000);
    expect((await market.rent(account, node.id, { gpu_count: 1 })).status).toBe(200);
    const second = await market.rent(account, node.id, { gpu_count: 1 });
    expect(second.body.message).toContain('Your balance is $0.00');
    expect(await holds()).toEqual([550_000]);
    const me = (await market.call('GET', '/users/me', { headers: account.key })).body;
    expect(me).toMatchObject({ balance: 0.55, held: 0.55, available: 0 });
  });

  it.each([
    ['volume_id', NOWHERE],
    ['backup_log_id', NOWHERE],
    ['restore_path', '/root'],
    ['enable_volume_encryption', true],
    ['max_spend_usd', 5],
    ['secret_names', ['a']],
  ])('says that %s is not available yet', async (name, value) => {
    const { status, body } = await market.rent(account, node.id, { [name]: value });
    expect(status).toBe(400);
    expect(body.error.code).toBe('bad_request');
    expect(body.message).toContain(name);
  });

  it.each([
    ['gpu_count', 0],
    ['gpu_count', 1.5],
    ['termination_hours', 'soon'],
    ['template_id', 'x'],
    ['pod_name', 'x'.repeat(101)],
  ])('refuses %s = %j as a matter of form', async (name, value) => {
    expect((await market.rent(account, node.id, { [name]: value })).status).toBe(422);
  });

  it('uses the default template, and refuses when there is none', async () => {
    const none = await market.rent(account, node.id, { template_id: null });
    expect(none.body.error.code).toBe('template_invalid');
    const body = { preference: { default_template_id: DEFAULT_TEMPLATE } };
    await market.call('PUT', '/users/me', { headers: account.key, body });
    const rented = await market.rent(account, node.id, { template_id: null });
    expect(rented.body.template_id).toBe(DEFAULT_TEMPLATE);
  });
});

describe('GPU counts, each row of marketplace reference 1.11', () => {
  type Wish = { minimum: number | null; splits: boolean; rented: number };
  const whole: Wish = { minimum: null, splits: true, rented: 0 };
  const split: Wish = { minimum: 2, splits: true, rented: 0 };

  /** A node of four GPUs. */
  async function fourGpus({ minimum, splits, rented }: Wish): Promise<AddedNode> {
    const { db } = market.ports;
    const four = await market.addNode({ gpus: 4 });
    const inventory = testInventory(four.id, { gpus: 4, collectedMs: market.clock.now() });
    const docker = { ...inventory.docker, gpu_runtime: splits };
    await market.report(four, { inventory: { ...inventory, docker, simulated: false } });
    await db
      .updateTable('gpu_slots')
      .set({ pod_id: NOWHERE })
      .where('executor_id', '=', four.id)
      .where('idx', '<', rented)
      .execute();
    const change = { min_gpu_count: minimum, slots_free: 4 - rented };
    await db.updateTable('executors').set(change).where('id', '=', four.id).execute();
    return four;
  }

  it.each<[string, unknown, Wish, number, string | null]>([
    ['no number', 'two', whole, 422, 'validation_error'],
    ['no whole number', 1.5, whole, 422, 'validation_error'],
    ['none', 0, whole, 422, 'validation_error'],
    ['not stated: all', null, whole, 200, null],
    ['not stated, some rented', null, { ...split, rented: 2 }, 400, 'gpu_count_invalid'],
    ['more than there are', 5, whole, 400, 'gpu_count_invalid'],
    ['more than there are, all rented', 5, { ...whole, rented: 4 }, 400, 'gpu_count_invalid'],
    ['all rented', 4, { ...whole, rented: 4 }, 400, 'node_unavailable'],
    ['a part without splitting', 2, { ...split, splits: false }, 400, 'gpu_split_not_allowed'],
    ['a part without a minimum', 2, whole, 400, 'gpu_count_invalid'],
    ['a part of neither', 2, { ...whole, splits: false }, 400, 'gpu_split_not_allowed'],
    ['below the minimum', 1, split, 400, 'gpu_count_invalid'],
    ['more than are free', 3, { ...split, rented: 2 }, 400, 'gpu_count_invalid'],
    ['leaving less than the minimum', 3, split, 200, null],
    ['all of what cannot be split', 4, { ...whole, splits: false }, 200, null],
  ])('%s', async (_, gpu_count, wish, status, code) => {
    const four = await fourGpus(wish);
    const answer = await market.rent(account, four.id, { gpu_count });
    expect([answer.status, answer.body.error?.code ?? null]).toEqual([status, code]);
    if (status === 200) expect(answer.body.gpu_count).toBe(String(gpu_count ?? 4));
    expect(await holds()).toHaveLength(status === 200 ? 1 : 0);
  });
});

describe('one wrong at a time', () => {
  it.each<[string, number, string, () => Promise<unknown>, object]>([
    ['a node that left', 404, 'node_not_found', () => setNode({ state: 'removed' }), {}],
    ['a queued node', 400, 'node_not_verified', () => setNode({ state: 'queued' }), {}],
    ['a private template of another', 404, 'template_not_found', async () => {}, { theirs: true }],
    ['a key that is none', 400, 'bad_request', async () => {}, { user_public_key: 'ssh-rsa x' }],
    ['a private key', 400, 'bad_request', async () => {}, { user_public_key: PRIVATE_KEY }],
    ['a time too long', 400, 'ttl_invalid', async () => {}, { termination_hours: 721 }],
    ['nothing on the account', 403, 'insufficient_balance', () => setBalance(0), {}],
  ])('%s', async (_, status, code, spoil, body) => {
    await spoil();
    const template_id = 'theirs' in body ? await privateTemplateOfAnother() : DEFAULT_TEMPLATE;
    const refused = await market.rent(account, node.id, { template_id, ...body });
    expect([refused.status, refused.body.error.code]).toEqual([status, code]);
    expect(refused.body.error.hint).not.toBe('');
    expect(JSON.stringify(refused.body)).not.toContain('PRIVATE KEY');
    expect(await holds()).toEqual([]);
  });

  it('rents a one-time template once', async () => {
    const body = { name: 'once', docker_image: 'ubuntu', category: 'UBUNTU' };
    const made = await market.call('POST', '/templates', {
      headers: account.key,
      body: { ...body, one_time_template: true },
    });
    const template_id = made.body.id;
    const wish = { gpu_count: 1, template_id };
    expect((await market.rent(account, node.id, wish)).status).toBe(200);
    const again = await market.rent(account, node.id, wish);
    expect([again.status, again.body.error.code]).toEqual([400, 'template_invalid']);
  });

  function setNode(change: { state: 'removed' | 'queued' }): Promise<unknown> {
    return market.ports.db.updateTable('executors').set(change).execute();
  }

  async function privateTemplateOfAnother(): Promise<string> {
    const other = await market.renter();
    const body = { name: 'mine', docker_image: 'ubuntu', category: 'UBUNTU', is_private: true };
    return (await market.call('POST', '/templates', { headers: other.key, body })).body.id;
  }
});

it.each([
  ['UI', 'ui'],
  ['sdk', 'sdk'],
  ['Mcp', 'mcp'],
  ['browser', 'programmatic'],
  [null, 'programmatic'],
])('X-Source %s of an API key is stored as %s', async (sent, stored) => {
  const headers: Record<string, string> = sent === null ? {} : { 'x-source': sent };
  expect((await market.rent(account, node.id, {}, headers)).body.source).toBe(stored);
});

it('takes the six keys of classic clients with their nulls, and unknown ones', async () => {
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

it('records where the rental came from', async () => {
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

it('gives a pod GPUs that are joined, and parts of split cards like whole ones', async () => {
  const { db } = market.ports;
  const other = await market.addNode({ gpus: 4, minimum: 1 });
  const inventory = testInventory(other.id, { gpus: 4, collectedMs: market.clock.now() });
  const uuids = inventory.gpu.devices.map(({ uuid }) => uuid);
  // NVLink joins the first with the third and the second with the fourth.
  const link = (a: number, b: number) => (a === b ? 'X' : a % 2 === b % 2 ? 'NV4' : 'SYS');
  const gpus = uuids.map((uuid, a) => ({
    ...{ uuid, numa_node: 0, cpus: null, links: uuids.map((_, b) => link(a, b)) },
  }));
  const devices = inventory.gpu.devices.map((device, index) =>
    index === 1 ? { ...device, cordoned: { reason: 'Xid: Xid 79', since_ms: 1 } } : device,
  );
  const gpu = { ...inventory.gpu, devices, topology: { gpus } };
  await market.report(other, { inventory: { ...inventory, gpu } });
  const rented = await market.rent(account, other.id, { gpu_count: 2 });
  expect(rented.status).toBe(200);
  const slots = await db
    .selectFrom('gpu_slots')
    .selectAll()
    .where('executor_id', '=', other.id)
    .orderBy('idx')
    .execute();
  // The cordoned second has no slot; the pair is preferred to the first two.
  expect(slots.map((slot) => [slot.gpu_uuid, slot.pod_id !== null])).toEqual([
    [uuids[0], true],
    [uuids[2], true],
    [uuids[3], false],
  ]);
});

it('gives the last GPU to one of 50 who want it', async () => {
  const renters = await Promise.all(Array.from({ length: 5 }, () => market.renter()));
  await market.rent(account, node.id, { gpu_count: 1 });
  const answers = await Promise.all(
    Array.from({ length: 50 }, (_, index) =>
      market.rent(renters[index % 5] ?? account, node.id, { gpu_count: 1 }),
    ),
  );
  const refused = answers.filter((answer) => answer.status !== 200);
  expect(refused).toHaveLength(49);
  for (const { body } of refused) expect(body.error.code).toBe('node_unavailable');
  const slots = await market.ports.db.selectFrom('gpu_slots').select('pod_id').execute();
  expect(new Set(slots.map((slot) => slot.pod_id)).size).toBe(2);
});

it('un-rents the only pod on a node, and asks which one when there are several', async () => {
  const unrent = () =>
    market.call('DELETE', `/executors/${node.id}/rent`, { headers: account.key });
  expect((await unrent()).body.error.code).toBe('pod_not_found');
  await market.rent(account, node.id, { gpu_count: 1 });
  const { id } = (await market.rent(account, node.id, { gpu_count: 1 })).body;
  expect((await unrent()).body.error.code).toBe('bad_request');
  await market.call('DELETE', `/pods/${id}`, { headers: account.key });
  expect((await unrent()).body).toMatchObject({ success: true, status: 'DELETING' });
});
