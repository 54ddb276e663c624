import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TestAccount } from '../../../test/fakes/central-fixture.ts';
import {
  type AddedNode,
  createTestMarket,
  DEFAULT_TEMPLATE,
  PUBLIC_KEY,
  type TestMarket,
} from '../../../test/fakes/market-fixture.ts';

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
    ['dockerfile_content', 'FROM scratch'],
    ['volume_id', NOWHERE],
    ['backup_log_id', NOWHERE],
    ['restore_path', '/root'],
    ['enable_volume_encryption', true],
    ['enable_jupyter', true],
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
