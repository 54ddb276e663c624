/** Machine requests in the provider portal, through HTTP. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import {
  type AddedNode,
  createTestMarket,
  type TestMarket,
  testSigner,
} from '../../../../test/fakes/scenes/market-fixture.ts';
import { mailsTo } from '../../../../test/fakes/scenes/outbox.ts';

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const REQUEST = { gpu_class: 'H100', gpu_count: 2, hourly_budget: 5, notes: 'soon' };

let market: TestMarket;
let account: TestAccount;
beforeEach(async () => {
  market = await createTestMarket();
  account = await market.renter();
});
afterEach(() => market.close());

/** Creates a request a millisecond after the previous one, so that their order is defined. */
async function request(change: object = {}): Promise<string> {
  await market.clock.advance(1);
  const made = await market.below('/machine-requests', account)('POST', '', {
    ...REQUEST,
    ...change,
  });
  return made.body.id;
}
const read = async (id: string) =>
  (await market.below('/machine-requests', account)('GET', `/${id}`)).body;
const listed = async (token: string) =>
  (await market.portal('GET', '/machine-requests', { token })).body;
const added = (token: string, body: object, path = '') =>
  market.portal('POST', `${path}/machine-added`, { token, body: body as Record<string, unknown> });

describe('a provider without a verified node', () => {
  it('receives only counts, and the same error for an existing and a missing request', async () => {
    const id = await request();
    await request({ gpu_count: null });
    const node = await market.addNode();
    const token = await market.logIn();
    expect((await listed(token)).data).toMatchObject({
      tier: 'aggregate',
      open_requests: 2,
      by_gpu_class: [{ gpu_class: 'H100', count: 2 }],
    });
    for (const path of [
      `/machine-requests/${id}`,
      `/machine-requests/${UNKNOWN_ID}`,
      '/machine-requests/no-id',
      `/executors/${node.id}/machine-requests`,
    ]) {
      const { status, body } = await market.portal('GET', path, { token });
      expect([path, status, body.error.code]).toEqual([path, 403, 'forbidden']);
      expect(JSON.stringify(body)).not.toContain('H100');
    }
    expect((await added(token, { machine_request_id: id })).status).toBe(403);
    expect((await market.portal('GET', '/machine-requests')).status).toBe(401);
    expect((await read(id)).status).toBe('pending');
  });

  it('receives only counts again after its last verified node was removed', async () => {
    await request();
    const [node, other, last] = [
      await market.verifiedNode(),
      await market.verifiedNode(),
      await market.verifiedNode(),
    ];
    const token = await market.logIn();
    const isDetailed = async () => Array.isArray((await listed(token)).data);
    expect(await isDetailed()).toBe(true);
    await market.report(node, { verdict: 'failed' });
    expect(await isDetailed()).toBe(true);
    await market.portal('DELETE', `/executors/${other.id}`, { token });
    expect(await isDetailed()).toBe(true);
    await market.report(last, { verdict: 'failed' });
    expect((await listed(token)).data.tier).toBe('aggregate');
    await market.clock.advance(1);
    await market.report(last);
    expect((await listed(token)).data).toHaveLength(1);
    await market.portal('DELETE', `/executors/${last.id}`, { token });
    expect((await listed(token)).data.tier).toBe('aggregate');
  });
});

describe('a provider with a verified node', () => {
  let node: AddedNode;
  let token: string;
  beforeEach(async () => {
    node = await market.verifiedNode({ gpus: 2 });
    token = await market.logIn();
  });

  it('lists pending requests by page, without the identity of their renters', async () => {
    const ids = [
      await request(),
      await request({ gpu_class: 'L40S' }),
      await request({ gpu_count: 1 }),
    ];
    await market.below('/machine-requests', account)('DELETE', `/${ids[2]}`);
    const body = await listed(token);
    expect(body).toMatchObject({ total: 2, page: 1, pagination: { total_pages: 1 } });
    expect(body.data[0]).toEqual({
      id: ids[0],
      gpu_class: 'H100',
      gpu_count: 2,
      hourly_budget: 5,
      country: null,
      notes: 'soon',
      status: 'pending',
      fulfilled_executor_id: null,
      created_at: expect.any(String),
    });
    const second = await market.portal('GET', '/machine-requests?page=2&limit=1', { token });
    expect(second.body.data.map(({ id }: { id: string }) => id)).toEqual([ids[1]]);
    const one = await market.portal('GET', `/machine-requests/${ids[0]}`, { token });
    expect(one.body.data).toEqual(body.data[0]);
    for (const id of [ids[2], UNKNOWN_ID]) {
      expect((await market.portal('GET', `/machine-requests/${id}`, { token })).status).toBe(404);
    }
  });

  it('lists the requests that one of its nodes meets', async () => {
    const matching = await request();
    await request({ gpu_class: 'L40S' });
    await request({ gpu_count: 3 });
    await request({ hourly_budget: 1 });
    const path = `/executors/${node.id}/machine-requests`;
    const { body } = await market.portal('GET', path, { token });
    expect([body.total, body.data.map(({ id }: { id: string }) => id)]).toEqual([1, [matching]]);
    const stranger = await market.logIn(testSigner(9));
    expect((await market.portal('GET', path, { token: stranger })).status).toBe(403);
    const nowhere = `/executors/${UNKNOWN_ID}/machine-requests`;
    expect((await market.portal('GET', nowhere, { token })).status).toBe(404);
  });

  it('fulfils a request once, which notifies the renter', async () => {
    const id = await request();
    const path = `/executors/${node.id}`;
    const done = await added(token, { machine_request_id: id }, path);
    expect([done.status, done.body.data]).toMatchObject([
      200,
      { id, status: 'fulfilled', fulfilled_executor_id: node.id },
    ]);
    expect((await added(token, { request_id: id }, path)).status).toBe(200);
    expect(await read(id)).toMatchObject({ status: 'fulfilled', fulfilled_executor_id: node.id });
    const mails = (await mailsTo(market, account.email)).filter(
      ({ kind }) => kind === 'machine-request',
    );
    expect(mails).toHaveLength(1);
    const events = await market.call('GET', '/users/me/events', { headers: account.key });
    expect(events.body[0]).toMatchObject({ detail: 'machine_request_fulfilled' });
    const other = await market.verifiedNode({ gpus: 2 });
    const late = await added(token, { machine_request_id: id, executor_id: other.id });
    expect(late.body.error.code).toBe('conflict');
    const list = await market.call('GET', `/executors?machine_request_id=${id}`, {
      headers: account.key,
    });
    expect(list.body.map((row: { id: string }) => row.id)).toEqual([node.id]);
  });

  it('fulfils a request with the provider’s newest matching node if the call names no node', async () => {
    const id = await request();
    const done = await added(token, { request_id: id });
    expect(done.body.data.fulfilled_executor_id).toBe(node.id);
    expect((await added(token, { request_id: id })).status).toBe(200);
    const odd = await request({ gpu_class: 'L40S' });
    expect((await added(token, { request_id: odd })).status).toBe(400);
    const quiet = await request({ notify: false });
    expect((await added(token, { request_id: quiet })).status).toBe(200);
    const mails = (await mailsTo(market, account.email)).filter(
      ({ kind }) => kind === 'machine-request',
    );
    expect(mails).toHaveLength(1);
  });

  it('cannot fulfil a request with a node that is unknown, unsuitable or belongs to another provider', async () => {
    const id = await request({ gpu_class: 'L40S' });
    const path = `/executors/${node.id}`;
    expect((await added(token, { machine_request_id: id }, path)).status).toBe(400);
    expect((await added(token, { machine_request_id: UNKNOWN_ID })).status).toBe(404);
    expect((await added(token, {}, path)).status).toBe(422);
    const stranger = await market.logIn(testSigner(9));
    expect((await added(stranger, { machine_request_id: id }, path)).status).toBe(403);
    const nowhere = { machine_request_id: id, executor_id: UNKNOWN_ID };
    expect((await added(token, nowhere)).body.error.code).toBe('node_not_found');
    expect((await read(id)).status).toBe('pending');
  });

  it('cannot fulfil a request with a node that is unverified, rented, too expensive or too small', async () => {
    const id = await request();
    const dear = await request({ hourly_budget: 1 });
    const large = await request({ min_vram_gb: 500 });
    const queued = await market.addNode({ gpus: 2 });
    for (const body of [
      { request_id: id, executor_id: queued.id },
      { request_id: dear },
      { request_id: large, executor_id: node.id },
    ]) {
      const refused = await added(token, body);
      expect([refused.status, refused.body.error.code]).toEqual([400, 'bad_request']);
    }
    expect((await market.rent(account, node.id)).status).toBe(200);
    for (const executor_id of [node.id, undefined]) {
      expect((await added(token, { request_id: id, executor_id })).status).toBe(400);
    }
    expect((await read(id)).status).toBe('pending');
    await market.report(queued, {}, { gpus: 2 });
    const done = await added(token, { request_id: id, executor_id: queued.id });
    expect([done.status, done.body.data?.status]).toEqual([200, 'fulfilled']);
  });

  it('receives at most one mail per hour about the requests of one renter', async () => {
    await market.ports.db.updateTable('providers').set({ email: 'host@example.com' }).execute();
    const subscription = { machine_request_subscription: ['H100', 'L40S'] };
    await market.portal('POST', '/auth/set-machine-request-subscription', {
      token,
      body: subscription,
    });
    for (let gpu_count = 1; gpu_count <= 6; gpu_count += 1) await request({ gpu_count });
    await market.central.runDue();
    expect(await mailsTo(market, 'host@example.com')).toHaveLength(1);
    const other = await market.renter();
    const body = { gpu_class: 'L40S' };
    const { id } = (await market.below('/machine-requests', other)('POST', '', body)).body;
    await market.central.runDue();
    const mails = await mailsTo(market, 'host@example.com');
    expect([mails.length, mails.some(({ text }) => text.includes(id))]).toEqual([2, true]);
  });

  it('receives one mail for each request to which it subscribed, and no other mail', async () => {
    const { db } = market.ports;
    await db.updateTable('providers').set({ email: 'host@example.com' }).execute();
    const subscription = { machine_request_subscription: ['H100', 'NVIDIA H100 80GB HBM3'] };
    await market.portal('POST', '/auth/set-machine-request-subscription', {
      token,
      body: subscription,
    });
    const id = await request({ gpu_class: 'h100', notes: 'confidential' });
    await request({ gpu_class: 'L40S' });
    await market.central.runDue();
    await market.central.runDue();
    const mails = await mailsTo(market, 'host@example.com');
    expect(mails.map(({ kind }) => kind)).toEqual(['machine-request-offer']);
    expect(mails[0]?.text).toContain(`/machine-requests/${id}`);
    expect(mails[0]?.text).not.toContain('confidential');
    expect(await db.selectFrom('due_work').select('kind').execute()).toEqual([]);
  });

  it('receives no text of the renter or of another subscriber in the mail about a request', async () => {
    const { db } = market.ports;
    await db.updateTable('providers').set({ email: 'host@example.com' }).execute();
    const subscription = { machine_request_subscription: ['B200'] };
    await market.portal('POST', '/auth/set-machine-request-subscription', {
      token,
      body: subscription,
    });
    const stranger = await market.logIn(testSigner(9));
    const body = { machine_request_subscription: ['!URGENT: https://evil.example/ B200'] };
    await market.portal('POST', '/auth/set-machine-request-subscription', {
      token: stranger,
      body,
    });
    await request({ gpu_class: '!CALL https://worse.example/ B200' });
    await market.central.runDue();
    const [mail] = await mailsTo(market, 'host@example.com');
    expect(mail?.subject).toBe('Machine request: NVIDIA B200');
    expect(JSON.stringify(mail)).not.toMatch(/evil|worse/);
  });

  it('fulfils a request once for concurrent calls', async () => {
    const id = await request();
    const other = await market.verifiedNode({ gpus: 2 });
    const both = await Promise.all(
      [node, other].map(({ id: executor_id }) => added(token, { request_id: id, executor_id })),
    );
    expect(both.map(({ status }) => status).toSorted()).toEqual([200, 409]);
  });
});
