import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import { DEFAULT_TEMPLATE, PUBLIC_KEY } from '../../../../test/fakes/scenes/market-fixture.ts';
import { createPodScene, type PodScene } from '../../../../test/fakes/scenes/pod-scene.ts';
import { payIn, setAvailable } from '../../../../test/fakes/scenes/wallet.ts';

const PRIVATE_KEY =
  '-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n-----END OPENSSH PRIVATE KEY-----';
const NOWHERE = '00000000-0000-4000-8000-000000000000';

let scene: PodScene;
let market: PodScene['market'];
let node: PodScene['node'];
let account: PodScene['account'];
beforeEach(async () => {
  scene = await createPodScene();
  ({ market, node, account } = scene);
});
afterEach(() => scene.close());

const have = (micro: number) => setAvailable(market.ports.db, micro);

describe('the order of errors', () => {
  it('checks the credential, then the idempotency key, the body and the node', async () => {
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

  it('is the same for a request with several errors', async () => {
    const { db } = market.ports;
    const wrong = { gpu_count: 3, template_id: NOWHERE, termination_hours: 0 };
    await db.deleteFrom('ssh_keys').execute();
    await have(0);
    await db.updateTable('accounts').set({ email_verified_at: null }).execute();
    await db.updateTable('executors').set({ state: 'failed', paused: 1 }).execute();
    await db.updateTable('providers').set({ banned_at: 1 }).execute();

    const code = async (body: Record<string, unknown> = wrong) =>
      (await market.rent(account, node.id, body)).body.error.code;
    expect(await code()).toBe('email_not_verified');
    await db.updateTable('accounts').set({ email_verified_at: 1 }).execute();
    expect(await code()).toBe('provider_banned');
    await db.updateTable('providers').set({ banned_at: null }).execute();
    expect(await code()).toBe('node_paused_by_provider');
    await db.updateTable('executors').set({ paused: 0 }).execute();
    expect(await code()).toBe('node_not_verified');
    await db.updateTable('executors').set({ state: 'verified' }).execute();
    expect(await code()).toBe('gpu_count_invalid');
    const fitting = { ...wrong, gpu_count: 1 };
    expect(await code(fitting)).toBe('insufficient_balance');
    await have(100_000_000);
    expect(await code(fitting)).toBe('template_not_found');
    const good = { gpu_count: 1, template_id: DEFAULT_TEMPLATE };
    expect(await code({ ...good, termination_hours: 0 })).toBe('bad_request');
    const keyed = { ...good, user_public_key: PUBLIC_KEY };
    expect(await code({ ...keyed, termination_hours: 0 })).toBe('ttl_invalid');
    expect(await code({ ...keyed, termination_hours: 720.5 })).toBe('ttl_invalid');
    expect(await scene.holds()).toEqual([]);
    expect((await market.rent(account, node.id, keyed)).status).toBe(200);
  });

  it('reports an insufficient balance in the form that clients parse', async () => {
    await have(100_000);
    const { status, body } = await market.rent(account, node.id);
    expect(status).toBe(403);
    expect(body.message).toBe(
      'Insufficient balance. This node costs $4.40/hour, so renting it requires at least $1.10 ' +
        '(15 minutes of runtime). Your balance is $0.10.',
    );
  });

  it('accepts a balance of exactly the required amount, and subtracts holds of other pods', async () => {
    await have(550_000);
    expect((await market.rent(account, node.id, { gpu_count: 1 })).status).toBe(200);
    const second = await market.rent(account, node.id, { gpu_count: 1 });
    expect(second.body.message).toContain('Your balance is $0.00');
    expect(await scene.holds()).toEqual([550_000]);
    const me = (await market.call('GET', '/users/me', { headers: account.key })).body;
    expect(me).toMatchObject({ balance: 0.55, held: 0.55, available: 0 });
  });

  it('accepts one of two concurrent rentals if the balance covers only one', async () => {
    await have(550_000);
    const both = await Promise.all(
      [1, 2].map(() => market.rent(account, node.id, { gpu_count: 1 })),
    );
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 403]);
    expect(await scene.holds()).toEqual([550_000]);
  });

  it.each([
    [{ secret_names: ['a'] }, 'secret_names: the account has no secret a'],
    [{ enable_volume_encryption: true }, 'do not encrypt volumes'],
  ])('rejects %j before any effect', async (wish, message) => {
    const { status, body } = await market.rent(account, node.id, wish);
    expect([status, body.error.code]).toEqual([400, 'bad_request']);
    expect(body.message).toContain(message);
    expect(await market.ports.db.selectFrom('pods').select('id').execute()).toEqual([]);
  });

  it.each([
    ['gpu_count', 0],
    ['gpu_count', 1.5],
    ['max_spend_usd', 0],
    ['max_spend_usd', 1e-9],
    ['max_spend_usd', 0.0000015],
    ['max_spend_usd', 0.000001],
    ['idle_shutdown_minutes', 43_201],
    ['enable_volume_encryption', 'yes'],
    ['termination_hours', 'soon'],
    ['template_id', 'x'],
    ['pod_name', 'x'.repeat(101)],
  ])('returns 422 for %s = %j', async (name, value) => {
    expect((await market.rent(account, node.id, { [name]: value })).status).toBe(422);
  });

  it('uses the default template, and rejects a rental without one', async () => {
    const none = await market.rent(account, node.id, { template_id: null });
    expect(none.body.error.code).toBe('template_invalid');
    const body = { preference: { default_template_id: DEFAULT_TEMPLATE } };
    await market.call('PUT', '/users/me', { headers: account.key, body });
    const rented = await market.rent(account, node.id, { template_id: null });
    expect(rented.body.template_id).toBe(DEFAULT_TEMPLATE);
  });
});

describe('a rental is rejected for', () => {
  it.each<[string, number, string, () => Promise<unknown>, object]>([
    ['a removed node', 404, 'node_not_found', () => setNode({ state: 'removed' }), {}],
    ['a queued node', 400, 'node_not_verified', () => setNode({ state: 'queued' }), {}],
    [
      'a private template of another account',
      404,
      'template_not_found',
      async () => {},
      { theirs: true },
    ],
    ['a malformed key', 400, 'bad_request', async () => {}, { user_public_key: 'ssh-rsa x' }],
    ['a private key', 400, 'bad_request', async () => {}, { user_public_key: PRIVATE_KEY }],
    [
      'a termination time outside the limits',
      400,
      'ttl_invalid',
      async () => {},
      { termination_hours: 721 },
    ],
    ['an empty account', 403, 'insufficient_balance', () => have(0), {}],
    ['a balance above the maximum', 403, 'account_balance_invalid', haveTooMuch, {}],
  ])('%s', async (_, status, code, spoil, body) => {
    await spoil();
    const template_id = 'theirs' in body ? await privateTemplateOfAnother() : DEFAULT_TEMPLATE;
    const refused = await market.rent(account, node.id, { template_id, ...body });
    expect([refused.status, refused.body.error.code]).toEqual([status, code]);
    expect(refused.body.error.hint).not.toBe('');
    expect(JSON.stringify(refused.body)).not.toContain('PRIVATE KEY');
    expect(await scene.holds()).toEqual([]);
  });

  it('a second use of a one-time template', async () => {
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

  /** Pays in the largest amount, in addition to the existing credit of the account. */
  function haveTooMuch(): Promise<void> {
    return payIn(market.ports.db, account.id, Number.MAX_SAFE_INTEGER);
  }

  function setNode(change: { state: 'removed' | 'queued' }): Promise<unknown> {
    return market.ports.db.updateTable('executors').set(change).execute();
  }

  async function privateTemplateOfAnother(): Promise<string> {
    const other = await market.renter();
    const body = { name: 'mine', docker_image: 'ubuntu', category: 'UBUNTU', is_private: true };
    return (await market.call('POST', '/templates', { headers: other.key, body })).body.id;
  }
});
