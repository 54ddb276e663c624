import { Webhook as Verifier } from 'standardwebhooks';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { naiveUtc, parseIsoTime, systemClock } from '#shared/runtime/clock.ts';
import { eventually } from '../../../../test/fakes/eventually.ts';
import {
  startWebhookReceiver,
  type WebhookReceiver,
} from '../../../../test/fakes/external/webhook-receiver.ts';
import { createManualClock } from '../../../../test/fakes/manual-clock.ts';
import {
  createTestCentral,
  type TestAccount,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { SYSTEM_ACTOR } from '../../platform/identity.ts';
import { RETRY_PAUSES_MS } from '../../platform/retries.ts';
import type { EventType } from '../events/event.schemas.ts';
import { recordEvent } from '../events/event.service.ts';

const HOUR_MS = 3_600_000;

let central: TestCentral;
let receiver: WebhookReceiver;
let account: TestAccount;
beforeEach(async () => {
  // The verifier compares the time in signatures with the system clock.
  const clock = createManualClock(systemClock.now());
  central = await createTestCentral({ webhookTargets: 'loopback', clock });
  receiver = await startWebhookReceiver();
  account = await central.signUp();
});
afterEach(async () => {
  await central.close();
  await receiver.close();
});

const call = (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object) =>
  central.call(method, `/webhooks${path}`, {
    headers: account.key,
    ...(body === undefined ? {} : { body }),
  });
const make = async (more: object = {}) =>
  (await call('POST', '', { url: receiver.url, ...more })).body;
const deliveries = async (id: string) => (await call('GET', `/${id}/deliveries`)).body;
const send = () => central.central.sendWebhooks();

/** Records an event with this detail. */
async function happen(
  detail: string,
  eventType: EventType = 'account',
  accountId = account.id,
): Promise<void> {
  await recordEvent(central.ports.db, central.ports, {
    accountId,
    subEventType: `${eventType}.success`,
    actor: SYSTEM_ACTOR,
    payload: { pod_name: null, node: null, detail },
  });
}
const details = () => receiver.received.map(({ body }) => JSON.parse(body).data.detail);

it('sends new events in order, once, and signed as Standard Webhooks requires', async () => {
  await happen('before');
  const { secret, ...webhook } = await make({ description: 'mine' });
  expect(webhook).toMatchObject({ enabled: true, description: 'mine', events: [] });
  expect((await call('GET', '')).body).toEqual([webhook]);
  for (const detail of ['one', 'two', 'three']) await happen(detail);
  await send();
  await send();
  expect(details()).toEqual(['one', 'two', 'three']);
  const log = await deliveries(webhook.id);
  expect(log).toMatchObject(
    [1, 2, 3].map(() => ({ state: 'delivered', attempts: 1, status: 204 })),
  );
  const [{ headers, body } = { headers: {}, body: '' }] = receiver.received;
  expect(new Verifier(secret).verify(body, headers)).toMatchObject({
    type: 'account.success',
    data: { id: headers['webhook-id'], detail: 'one' },
  });
});

it('sends to a webhook only the subscribed events of its own account', async () => {
  const { id } = await make({ events: ['pod-fail', 'backup.success'] });
  const other = await central.signUp();
  await recordEvent(central.ports.db, central.ports, {
    accountId: other.id,
    subEventType: 'backup.success',
    actor: SYSTEM_ACTOR,
    payload: { pod_name: null, node: null, detail: 'not ours' },
  });
  await happen('no', 'billing');
  await happen('saved', 'backup');
  await happen('failed', 'pod-fail');
  await send();
  expect(details()).toEqual(['saved', 'failed']);
  const theirs = await central.call('GET', `/webhooks/${id}`, { headers: other.key });
  expect(theirs.status).toBe(404);
});

it('delivers all events in order after the receiver was down for hours', async () => {
  const { id } = await make();
  receiver.answer('none');
  await happen('one');
  await happen('two');
  for (let hours = 0; hours < 6 * 60; hours += 1) {
    await central.clock.advance(60_000);
    await send();
  }
  expect(new Set(receiver.ids()).size).toBe(1);
  expect((await call('GET', `/${id}`)).body.next_attempt_at).not.toBeNull();
  expect(await deliveries(id)).toMatchObject([{ state: 'waiting', status: null, attempts: 6 }]);
  receiver.answer(200);
  receiver.received.length = 0;
  await central.clock.advance(6 * HOUR_MS);
  await send();
  expect(details()).toEqual(['one', 'two']);
});

it('does not follow redirects of receivers', async () => {
  const { id } = await make();
  receiver.answer(302);
  await happen('one');
  await send();
  expect(receiver.received).toHaveLength(1);
  expect(await deliveries(id)).toMatchObject([{ state: 'waiting', status: 302 }]);
});

it('disables a webhook after status 410, notifies the owner, and resumes when the webhook is enabled again', async () => {
  const { id } = await make();
  receiver.answer(410);
  await happen('one');
  await send();
  await happen('two');
  await send();
  expect(receiver.received).toHaveLength(1);
  expect((await call('GET', `/${id}`)).body).toMatchObject({
    enabled: false,
    disabled_reason: 'gone',
  });
  const mails = await central.ports.db.selectFrom('mails').select('kind').execute();
  expect(mails).toContainEqual({ kind: 'webhook-disabled' });
  receiver.answer(200);
  receiver.received.length = 0;
  await call('PATCH', `/${id}`, { enabled: true });
  await send();
  expect(details()).toEqual(['one', `webhook ${id} disabled`, 'two']);
});

it('signs with both the old and the new secret for a day after a rotation', async () => {
  const { id, secret } = await make();
  const fresh = (await call('POST', `/${id}/rotate-secret`)).body.secret;
  await happen('one');
  await send();
  const [{ headers, body } = { headers: {}, body: '' }] = receiver.received;
  for (const key of [secret, fresh]) new Verifier(key).verify(body, headers);
  await central.clock.advance(24 * HOUR_MS - 1);
  await happen('two');
  await send();
  await central.clock.advance(1);
  await happen('three');
  await send();
  const counts = receiver.received.map(
    (message) => message.headers['webhook-signature']?.split(' ').length,
  );
  expect([secret === fresh, counts]).toEqual([false, [2, 2, 1]]);
});

it('signs with all secrets replaced within the last day, at most five, so that a lost response does not break the receiver', async () => {
  const { id, secret } = await make();
  const rotate = () => call('POST', `/${id}/rotate-secret`);
  const made = [secret];
  for (const _ of Array(5)) {
    made.push((await rotate()).body.secret);
    // The verifier accepts times that differ by up to five minutes.
    await central.clock.advance(30_000);
  }
  await happen('one');
  await send();
  const [{ headers, body } = { headers: {}, body: '' }] = receiver.received;
  for (const key of made) new Verifier(key).verify(body, headers);
  const refused = await rotate();
  expect([refused.status, refused.body.error]).toMatchObject([
    409,
    { code: 'conflict', message: expect.stringContaining('5 times within a day') },
  ]);
  await central.clock.advance(24 * HOUR_MS - 150_000);
  expect((await rotate()).status).toBe(200);
});

it('rotates the secret once per Idempotency-Key, and encrypts the secret in the stored response', async () => {
  const { id } = await make();
  const { db } = central.ports;
  const rotate = (key: string) =>
    central.call('POST', `/webhooks/${id}/rotate-secret`, {
      headers: { ...account.key, 'idempotency-key': key },
    });
  const first = await rotate('one');
  const again = await rotate('one');
  expect([again.status, again.headers['idempotent-replayed'], again.body]).toEqual([
    ...[200, 'true', first.body],
  ]);
  const [row] = await db.selectFrom('webhooks').select('replaced_json').execute();
  expect(JSON.parse(row?.replaced_json ?? '')).toHaveLength(1);
  const stored = JSON.stringify(await db.selectFrom('idempotency').selectAll().execute());
  expect(stored).not.toContain(first.body.secret);
  expect(stored).not.toContain('whsec_');
  for (const key of ['two', 'three', 'four', 'five']) expect((await rotate(key)).status).toBe(200);
  const refused = [await rotate('six'), await rotate('six')];
  expect(refused.map(({ status }) => status)).toEqual([409, 409]);
  expect(refused[1]?.body).toEqual(refused[0]?.body);
});

it('sends one delivery again, or all events since a given time', async () => {
  const { id } = await make();
  receiver.answer(500);
  await happen('one');
  await send();
  const [failed] = await deliveries(id);
  receiver.answer(200);
  const again = await call('POST', `/${id}/deliveries/${failed.id}/replay`);
  expect(again.body).toMatchObject({ state: 'delivered', attempts: 2, status: 200 });
  const since = naiveUtc(central.clock.now());
  await central.clock.advance(10_000);
  await happen('two');
  await send();
  receiver.received.length = 0;
  expect((await call('POST', `/${id}/replay`, { since })).status).toBe(200);
  await send();
  expect(details()).toEqual(['one', 'two']);
  await central.clock.advance(1);
  const later = naiveUtc(central.clock.now() + HOUR_MS);
  expect((await call('POST', `/${id}/replay`, { since: later })).body.error.code).toBe(
    'bad_request',
  );
});

it('does not let a silent receiver delay other webhooks or the shutdown', async () => {
  const prompt = await startWebhookReceiver();
  const other = await central.signUp();
  try {
    const { id } = await make();
    receiver.answer('never');
    const body = { url: prompt.url };
    await central.call('POST', '/webhooks', { headers: other.key, body });
    await happen('slow');
    central.central.start();
    await eventually('a delivery to the slow receiver', () => receiver.received.length === 1);
    await happen('prompt', 'account', other.id);
    await central.clock.advance(2_000);
    await eventually('a delivery to the other receiver', () => prompt.received.length === 1);
    expect(await deliveries(id)).toEqual([]);
    await central.central.close();
  } finally {
    await prompt.close();
  }
});

it('delivers to a webhook only from the process that holds its lease, until the lease expires', async () => {
  await make();
  await happen('one');
  const nowMs = central.clock.now();
  await central.ports.db
    .updateTable('webhooks')
    .set({ lease_until: nowMs + 60_000, lease_token: 'of a process that died' })
    .execute();
  await send();
  expect(receiver.received).toHaveLength(0);
  await central.clock.advance(60_000);
  await Promise.all([send(), send()]);
  expect(details()).toEqual(['one']);
});

it.each([
  [{}, 422],
  [{ url: 'https://example.com/' }, 422],
  [{ url: 'http://127.0.0.1:1/', events: ['pod.exploded'] }, 422],
  [{ url: `http://127.0.0.1:1/${'x'.repeat(2_048)}` }, 422],
])('rejects a malformed webhook: %#', async (body, status) => {
  expect((await call('POST', '', body)).status).toBe(status);
});

it('limits an account to ten webhooks, and deletes them with the account', async () => {
  for (let count = 0; count < 10; count += 1) await make();
  expect((await call('POST', '', { url: receiver.url })).body.error.code).toBe('bad_request');
  const [{ id }] = (await call('GET', '')).body;
  await happen('one');
  await send();
  expect((await call('DELETE', `/${id}`)).status).toBe(200);
  expect((await call('GET', `/${id}`)).status).toBe(404);
  expect((await central.call('DELETE', '/users/me', { headers: account.session })).status).toBe(
    200,
  );
  expect(await central.ports.db.selectFrom('webhooks').selectAll().execute()).toEqual([]);
});

it('retries an event exactly after each pause, with a new signature and the same id, then sends the next event', async () => {
  const { id } = await make();
  receiver.answer(500);
  for (const detail of ['one', 'two']) await happen(detail);
  const times = [central.clock.now()];
  await send();
  for (const pauseMs of RETRY_PAUSES_MS) {
    await central.clock.advance(pauseMs - 1);
    await send();
    expect(receiver.received).toHaveLength(times.length);
    await central.clock.advance(1);
    times.push(central.clock.now());
    await send();
  }
  // The next event is sent after the last attempt.
  times.push(central.clock.now());
  expect(details()).toEqual([...Array(8).fill('one'), 'two']);
  expect(new Set(receiver.ids()).size).toBe(2);
  const signedAt = receiver.received.map(({ headers }) => headers['webhook-timestamp']);
  expect(signedAt).toEqual(times.map((ms) => String(Math.floor(ms / 1_000))));
  expect(await deliveries(id)).toMatchObject([
    { state: 'waiting', attempts: 1, status: 500 },
    { state: 'failed', attempts: 8, status: 500 },
  ]);
});

it('disables a webhook after five days of failures, but still sends a delivery again on request', async () => {
  const { id } = await make();
  receiver.answer('none');
  for (const detail of ['one', 'two', 'three', 'four', 'five']) await happen(detail);
  const sinceMs = central.clock.now();
  let shown = (await call('GET', `/${id}`)).body;
  while (shown.enabled) {
    await send();
    shown = (await call('GET', `/${id}`)).body;
    const nextMs = parseIsoTime(shown.next_attempt_at ?? '') ?? central.clock.now();
    await central.clock.advance(nextMs - central.clock.now());
  }
  expect(shown).toMatchObject({ enabled: false, disabled_reason: 'failing' });
  expect(central.clock.now() - sinceMs).toBeGreaterThanOrEqual(5 * 24 * HOUR_MS);
  const log = await deliveries(id);
  const states = log.map(({ state }: { state: string }) => state);
  expect(states).toEqual(['waiting', 'failed', 'failed', 'failed']);
  const pages = await Promise.all(
    [1, 2, 3].map((page) => call('GET', `/${id}/deliveries?limit=2&page=${page}`)),
  );
  expect(pages.map(({ body }) => body)).toEqual([log.slice(0, 2), log.slice(2), []]);
  const mails = await central.ports.db.selectFrom('mails').select('kind').execute();
  expect(mails.filter(({ kind }) => kind === 'webhook-disabled')).toHaveLength(1);
  receiver.answer(200);
  receiver.received.length = 0;
  await send();
  expect(receiver.received).toEqual([]);
  const again = await call('POST', `/${id}/deliveries/${log.at(-1).id}/replay`);
  expect([again.body.state, details()]).toEqual(['delivered', ['one']]);
  await call('PATCH', `/${id}`, { enabled: true });
  await send();
  expect(details().slice(1, 3)).toEqual(['four', 'five']);
});

it('retains the log of deliveries for exactly 30 days', async () => {
  const { id } = await make();
  await happen('one');
  await send();
  await central.clock.advance(30 * 24 * HOUR_MS);
  await central.central.sweepAccounts();
  expect(await deliveries(id)).toHaveLength(1);
  await central.clock.advance(1);
  await central.central.sweepAccounts();
  expect(await deliveries(id)).toEqual([]);
});
