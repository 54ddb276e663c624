/** Notice periods through HTTP: announcement, notifications, start and end. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { naiveUtc } from '#shared/runtime/clock.ts';
import { createBackupScene } from '../../../../test/fakes/scenes/central-backup-scene.ts';
import type { TestAccount } from '../../../../test/fakes/scenes/central-fixture.ts';
import { testSigner } from '../../../../test/fakes/scenes/market-fixture.ts';
import { mailsTo } from '../../../../test/fakes/scenes/outbox.ts';
import { CONTACT_WAIT_MS } from '../pods/pod-contact.ts';
import { maintenanceAt } from './notice.service.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';

let scene: Awaited<ReturnType<typeof createBackupScene>>;
let market: typeof scene.market;
let token: string;
beforeEach(async () => {
  scene = await createBackupScene();
  market = scene.market;
  token = await market.logIn();
});
afterEach(() => scene.close());

const inMs = (ms: number) => `${naiveUtc(market.clock.now() + ms)}Z`;
const path = (id = scene.node.id) => `/executors/${id}/notice-period`;
const post = (body: object, by = token) =>
  market.portal('POST', path(), { token: by, body: body as Record<string, unknown> });
const cancel = (by = token) => market.portal('DELETE', path(), { token: by });
const removal = () => ({ starting_at: inMs(48 * HOUR_MS), permanent_removal: true });
const maintenance = () => ({ starting_at: inMs(24 * HOUR_MS), period_in_minute: 30 });
const mails = async (account: TestAccount = scene.account) =>
  (await mailsTo(market, account.email)).filter(({ kind }) => kind === 'notice-period');
const noticesOf = async (podId: string): Promise<string[]> =>
  (await scene.events(podId))
    .filter((event: { event_type: string }) => event.event_type === 'notice')
    .map((event: { detail: string }) => event.detail);
const nodeRow = async () => {
  const { body } = await market.call('GET', '/executors');
  return body.find((node: { id: string }) => node.id === scene.node.id);
};
const portalRow = async () =>
  (await market.portal('GET', `/executors/${scene.node.id}`, { token })).body.data;

async function usedUntil(podId: string): Promise<number | null> {
  const meter = await market.ports.db
    .selectFrom('usage_meters')
    .select('ended_at')
    .where('pod_id', '=', podId)
    .executeTakeFirstOrThrow();
  return meter.ended_at;
}

it('announces a notice, shows it on the node and its pods, mails each renter once, and cancels it', async () => {
  const second = await scene.running();
  await scene.remove(second);
  await market.sync();
  await scene.running({ pod_name: 'other' });
  const request = { ...maintenance(), reason: 'new <disks>' };
  const set = await post(request);
  const shown = { ...request, permanent_removal: false };
  expect([set.status, set.body.data]).toEqual([200, shown]);
  expect((await portalRow()).notice_period).toEqual(shown);
  expect((await scene.pod(scene.podId)).notice_period).toEqual(shown);
  const [mail, ...more] = await mails();
  expect(more).toEqual([]);
  expect(mail?.text).toContain('mine, other.');
  expect(mail?.text).toContain(request.starting_at);
  expect(mail?.html).toContain('new &lt;disks&gt;');
  expect(await noticesOf(scene.podId)).toEqual(['notice_set']);
  expect((await post(removal())).body.error.code).toBe('conflict');

  expect((await cancel()).body.data).toEqual(shown);
  expect((await portalRow()).notice_period).toBeNull();
  expect((await scene.pod(scene.podId)).notice_period).toBeNull();
  expect(await mails()).toHaveLength(2);
  expect((await cancel()).status).toBe(400);
  const db = market.ports.db;
  const due = db.selectFrom('due_work').select('kind').where('kind', 'like', 'notice%');
  expect(await due.execute()).toEqual([]);
  expect((await post(removal())).status).toBe(200);
});

it('shows a notice at once in the node list, in estimates and in rentals', async () => {
  expect((await nodeRow()).notice_period).toBeNull();
  await post(removal());
  expect((await nodeRow()).notice_period).toMatchObject({ permanent_removal: true });
  const query = `executor_id=${scene.node.id}&template_id=1948937e-5049-47ad-8e26-bcf1a4549d70`;
  const estimate = await scene.call('GET', `/executors/deployment-estimate?${query}`);
  expect(estimate.body).toMatchObject({
    warning_message: expect.stringMatching(
      /removes this node at .*: pods on this node end at that time/,
    ),
    is_slow_machine: false,
  });
  const rented = await market.rent(await market.renter(), scene.node.id, { gpu_count: 1 });
  expect(rented.body.notice_period).toMatchObject({ permanent_removal: true });
});

it('accepts a notice and its cancellation only from the provider of the node', async () => {
  const stranger = await market.logIn(testSigner(9));
  expect((await post(maintenance(), stranger)).status).toBe(403);
  await post(maintenance());
  expect((await cancel(stranger)).status).toBe(403);
  expect((await market.portal('DELETE', path(UNKNOWN_ID), { token })).body.error.code).toBe(
    'node_not_found',
  );
  expect((await market.portal('POST', path(), { body: {} })).status).toBe(401);
  expect((await post({})).status).toBe(400);
  expect((await post({ ...maintenance(), period_in_minute: 'five' })).status).toBe(422);
});

it('creates one notice for concurrent announcements', async () => {
  const all = await Promise.all(Array.from({ length: 5 }, () => post(maintenance())));
  expect(all.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409, 409]);
  expect(await mails()).toHaveLength(1);
});

it('rejects a cancellation from the announced start on, even if the start was not processed yet', async () => {
  await post(maintenance());
  await market.clock.advance(24 * HOUR_MS - 1);
  expect((await cancel()).status).toBe(200);
  await post(maintenance());
  await market.clock.advance(24 * HOUR_MS);
  expect((await cancel()).status).toBe(400);
  await market.sync();
  expect((await cancel()).status).toBe(400);
});

it('does not end pods for maintenance, and reports the maintenance window', async () => {
  const { db } = market.ports;
  const startMs = market.clock.now() + 24 * HOUR_MS;
  await post(maintenance());
  await scene.later(24 * HOUR_MS);
  const window = { fromMs: startMs, toMs: startMs + 30 * MINUTE_MS };
  for (const [atMs, found] of [
    [startMs - 1, null],
    [startMs, window],
    [window.toMs - 1, window],
    [window.toMs, null],
  ] as const) {
    expect(await maintenanceAt(db, scene.node.id, atMs)).toEqual(found);
  }
  expect((await post(maintenance())).status).toBe(409);
  expect((await scene.pod(scene.podId)).notice_period).not.toBeNull();
  await scene.later(30 * MINUTE_MS - 1);
  expect((await portalRow()).notice_period).not.toBeNull();
  await scene.later(1);
  expect((await portalRow()).notice_period).toBeNull();
  expect(await scene.pod(scene.podId)).toMatchObject({ status: 'RUNNING', notice_period: null });
  expect(await maintenanceAt(db, scene.node.id, startMs)).toEqual(window);
  const details = ['notice_set', 'notice_started', 'notice_ended'];
  expect(await noticesOf(scene.podId)).toEqual(details);
  expect((await post(maintenance())).status).toBe(200);
});

it('ends the pods and removes the node at the announced time, even if the removal is processed late', async () => {
  const startMs = market.clock.now() + 48 * HOUR_MS;
  await post(removal());
  const doomed = await scene.running({ termination_hours: 72 });
  await market.clock.advance(47 * HOUR_MS);
  await market.central.runDue();
  // Skips the start, so that no process handles it in time.
  await market.clock.advance(5 * HOUR_MS);
  const late = await market.rent(await market.renter(), scene.node.id, { gpu_count: 1 });
  expect(late.body.error?.code).toBe('node_unavailable');
  // The node is contacted first to check whether its pods continued to run.
  await market.sync();
  await market.clock.advance(CONTACT_WAIT_MS);
  await market.central.runDue();
  expect(await nodeRow()).toBeUndefined();
  for (const id of [scene.podId, doomed]) {
    const row = await market.ports.db
      .selectFrom('pods')
      .select(['removal_at', 'reason_code'])
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    expect(row).toEqual({ removal_at: startMs, reason_code: 'provider_notice' });
    expect(await usedUntil(id)).toBe(startMs);
  }
  await scene.later();
  expect((await scene.pod(scene.podId)).details).toMatchObject({ reason_code: 'provider_notice' });
  expect((await portalRow()).status).toBe('paused');
  await scene.later(10_000);
  const gone = await market.portal('GET', `/executors/${scene.node.id}`, { token });
  expect(gone.body.error.code).toBe('node_not_found');
  const left = await market.ports.db.selectFrom('due_work').select('kind').execute();
  expect(left).toEqual([]);
  expect(await noticesOf(doomed)).toEqual(['notice_started']);
});

it('charges up to the announced removal, even for a pod that its renter deletes before the removal is processed', async () => {
  await post(removal());
  const startMs = market.clock.now() + 48 * HOUR_MS;
  await market.clock.advance(50 * HOUR_MS);
  await market.sync();
  expect((await scene.pod(scene.podId)).status).toBe('RUNNING');
  await scene.remove(scene.podId);
  expect(await usedUntil(scene.podId)).toBe(startMs);
});

it('permits rentals until the announced removal', async () => {
  await post(removal());
  await market.clock.advance(48 * HOUR_MS - 1);
  const rent = async () => market.rent(await market.renter(), scene.node.id, { gpu_count: 1 });
  expect((await rent()).status).toBe(200);
  await market.clock.advance(1);
  const late = await rent();
  expect([late.status, late.body.message]).toEqual([400, 'The provider is removing this node']);
});

it('removes the node after an hour if its agent is unreachable', async () => {
  await post(removal());
  scene.host.up = false;
  await scene.later(48 * HOUR_MS);
  await scene.later(CONTACT_WAIT_MS);
  await scene.later(HOUR_MS - 10_000);
  expect((await portalRow()).status).toBe('paused');
  await scene.later(10_000);
  expect((await market.portal('GET', `/executors/${scene.node.id}`, { token })).status).toBe(404);
});

it('backs up pods with a backup schedule an hour before a removal', async () => {
  const unscheduled = await scene.running();
  const config = { pod_id: scene.podId, backup_frequency_hours: 720, retention_days: 5 };
  const made = await scene.call('POST', '/backup-configs', {
    ...config,
    backup_path: '/workspace',
  });
  expect(made.status).toBe(200);
  await post(removal());
  const backups = async (id: string) =>
    (await scene.call('GET', `/backup-logs/pod/${id}`)).body.items;
  await scene.later(47 * HOUR_MS - 1);
  expect(await backups(scene.podId)).toEqual([]);
  await scene.later(1);
  expect(await backups(scene.podId)).toMatchObject([{ status: 'IN_PROGRESS' }]);
  expect(await backups(unscheduled)).toEqual([]);
});

it('requests the removal of a pod once if its renter deletes the pod at the same time', async () => {
  await post(removal());
  await market.clock.advance(48 * HOUR_MS);
  await Promise.all([scene.remove(scene.podId), market.central.runDue()]);
  await scene.later();
  await scene.later(10_000);
  expect((await scene.pod(scene.podId)).details.deleted_at).toEqual(expect.any(String));
  const deletions = (await scene.events(scene.podId)).filter(
    (event: { sub_event_type: string }) => event.sub_event_type === 'pod-delete.requested',
  );
  expect(deletions).toHaveLength(1);
});

it('has no effect at the announced time if the provider removed the node earlier', async () => {
  await scene.remove(scene.podId);
  await scene.later();
  await post(removal());
  const path = `/executors/${scene.node.id}`;
  expect((await market.portal('DELETE', path, { token })).status).toBe(200);
  await scene.later(50 * HOUR_MS);
  const rows = await market.ports.db.selectFrom('notices').select('state').execute();
  expect(rows).toEqual([{ state: 'done' }]);
});

it('accepts at most ten announcements for a node in 24 hours', async () => {
  for (let round = 0; round < 10; round += 1) {
    expect((await post(maintenance())).status).toBe(200);
    await cancel();
  }
  expect((await post(maintenance())).status).toBe(400);
  expect(await mails()).toHaveLength(20);
  await market.clock.advance(24 * HOUR_MS);
  expect((await post(maintenance())).status).toBe(200);
});

it('ends the pods of three renters at the announced removal, and mails and charges each renter once', async () => {
  const node = await market.verifiedNode({ gpus: 3, minimum: 1 });
  const renters = [await market.renter(), await market.renter(), await market.renter()];
  const ids: string[] = [];
  for (const renter of renters) {
    ids.push((await market.rent(renter, node.id, { gpu_count: 1 })).body.id);
  }
  await market.sync();
  const body = removal();
  expect((await market.portal('POST', path(node.id), { token, body })).status).toBe(200);
  for (const renter of renters) expect(await mails(renter)).toHaveLength(1);
  expect(await mails()).toEqual([]);
  const startMs = market.clock.now() + 48 * HOUR_MS;
  const statuses = () =>
    Promise.all(
      renters.map(async ({ key: headers }, index) => {
        const { body: pod } = await market.call('GET', `/pods/${ids[index]}`, { headers });
        return pod.status ?? pod.error.code;
      }),
    );
  await scene.later(48 * HOUR_MS - 1);
  expect(await statuses()).toEqual(['RUNNING', 'RUNNING', 'RUNNING']);
  await scene.later(1);
  await scene.later(10_000);
  expect(await statuses()).toEqual(['pod_not_found', 'pod_not_found', 'pod_not_found']);
  for (const [index, { key: headers }] of renters.entries()) {
    expect(await usedUntil(ids[index] ?? '')).toBe(startMs);
    const { body: statement } = await market.call('GET', `/pods/${ids[index]}/statement`, {
      headers,
    });
    expect(statement.total).toBe(105.6);
    expect(await mails(renters[index])).toHaveLength(1);
  }
  const gone = await market.portal('GET', `/executors/${node.id}`, { token });
  expect(gone.status).toBe(404);
  // The other node and its pod are not affected.
  expect((await scene.pod(scene.podId)).status).toBe('RUNNING');
});

it('retains a notice and the price of rented pods when the price of the node changes', async () => {
  await post(maintenance());
  const body = { price_per_gpu: 3.3 };
  const priced = await market.portal('POST', `/executors/${scene.node.id}/update-price`, {
    token,
    body,
  });
  expect([priced.status, priced.body.data.notice_period !== null]).toEqual([200, true]);
  expect((await scene.pod(scene.podId)).price).toBe(2.2);
  const rented = await market.rent(scene.account, scene.node.id, { gpu_count: 1 });
  expect(rented.body).toMatchObject({ price: 3.3, notice_period: { period_in_minute: 30 } });
  await scene.later(24 * HOUR_MS);
  expect(await noticesOf(scene.podId)).toEqual(['notice_set', 'notice_started']);
  const { body: statement } = await market.call('GET', `/pods/${scene.podId}/statement`, {
    headers: scene.account.key,
  });
  expect(statement.lines).toMatchObject([{ price_per_gpu: 2.2 }]);
});
