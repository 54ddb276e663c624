import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { createTestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';
import { mailedToken, mailsTo } from '../../../../test/fakes/scenes/outbox.ts';

const BODY = { email: 'Ada@example.com', password: 'correct horse' };
const KIND = 'verify-email';

let central: TestCentral;
beforeEach(async () => {
  central = await createTestCentral({ verifyEmailAtSignup: false });
});
afterEach(() => central.close());

const post = (path: string, body: object) => central.call('POST', path, { body });
const verify = async (token: string) => {
  const { status, body } = await post('/auth/verify-email', { token });
  return [status, body.error?.code ?? body.success];
};
const me = async (key: string) =>
  (await central.call('GET', '/users/me', { headers: { 'x-api-key': key } })).body;

it('verifies an address once with the mailed token and grants the credit', async () => {
  const { body } = await post('/users', BODY);
  expect(body).toMatchObject({
    signup_credit_granted: false,
    user: { balance: 0, email_verified: false },
  });
  const token = await mailedToken(central, BODY.email, KIND);
  const answer = await post('/auth/verify-email', { token });
  expect([answer.status, answer.body]).toEqual([
    200,
    { success: true, message: 'The e-mail address is confirmed' },
  ]);
  expect(await me(body.api_key)).toMatchObject({ balance: 10, email_verified: true });
  expect(await verify(token)).toEqual([400, 'bad_request']);
  const headers = { 'x-api-key': body.api_key };
  const events = await central.call('GET', '/users/me/events', { headers });
  expect(events.body).toMatchObject([
    {
      event_type: 'account',
      detail: 'e-mail address verified',
      actor: { auth: 'system' },
      request_id: answer.headers['x-request-id'],
    },
  ]);
});

it('accepts a token only once when requests are concurrent', async () => {
  const { body } = await post('/users', BODY);
  const token = await mailedToken(central, BODY.email, KIND);
  const all = await Promise.all(Array.from({ length: 10 }, () => verify(token)));
  expect(all.filter(([status]) => status === 200)).toHaveLength(1);
  expect((await me(body.api_key)).balance).toBe(10);
});

it('rejects expired, unknown and malformed tokens', async () => {
  const other = { ...BODY, email: 'in-time@example.com' };
  for (const body of [BODY, other]) await post('/users', body);
  const token = await mailedToken(central, BODY.email, KIND);
  const inTime = await mailedToken(central, other.email, KIND);
  await central.clock.advance(24 * 3_600_000 - 1);
  expect(await verify(inTime)).toEqual([200, true]);
  await central.clock.advance(1);
  expect(await verify(token)).toEqual([400, 'bad_request']);
  expect(await verify('x'.repeat(43))).toEqual([400, 'bad_request']);
  expect(await verify('')).toEqual([422, 'validation_error']);
  expect((await post('/auth/verify-email', {})).status).toBe(422);
  await central.central.sweepAccounts();
  expect(await central.ports.db.selectFrom('account_tokens').selectAll().execute()).toEqual([]);
});

it('resends the mail on request, with the same response for every address', async () => {
  await post('/users', BODY);
  const texts = new Set<string>();
  for (const email of [' ADA@example.com', 'nobody@example.com', 'no address']) {
    const { status, body } = await post('/auth/resend-verify-email', { email });
    expect([status, body.success]).toEqual([200, true]);
    texts.add(body.message);
  }
  expect(texts.size).toBe(1);
  const sent = await mailsTo(central, BODY.email);
  expect(sent.map(({ kind }) => kind)).toEqual([KIND, KIND]);
  expect(await verify(await mailedToken(central, BODY.email, KIND))).toEqual([200, true]);
  await post('/auth/resend-verify-email', { email: BODY.email });
  expect(await mailsTo(central, BODY.email)).toHaveLength(2);
});

/** Signs up, confirms the address, logs in, and returns a function that requests another address. */
async function confirmed() {
  const { body } = await post('/users', BODY);
  await verify(await mailedToken(central, BODY.email, KIND));
  const { token: session } = (await post('/users/login', BODY)).body;
  const headers = { authorization: `Bearer ${session}` };
  const put = (change: object) =>
    central.call('PUT', '/users/me', {
      headers,
      body: { current_password: BODY.password, ...change },
    });
  return { body, put };
}

const logsIn = async (email: string, password = BODY.password) =>
  (await post('/users/login', { email, password })).status === 200;

it('changes an address when it is confirmed, notifies the old address and grants no second credit', async () => {
  const { body, put } = await confirmed();
  await post('/users/request-reset-password', { email: BODY.email });
  const reset = await mailedToken(central, BODY.email, 'password-reset');
  const requested = await put({ email: 'New@example.com' });
  expect(requested.body).toMatchObject({ email: BODY.email, email_verified: true });
  expect([await logsIn(BODY.email), await logsIn('new@example.com')]).toEqual([true, false]);
  const notices = async () =>
    (await mailsTo(central, BODY.email))
      .filter(({ kind }) => kind === 'email-changed')
      .map(({ text }) => text.includes('New@example.com'));
  expect(await notices()).toEqual([true]);
  const stale = { token: reset, new_password: 'another horse' };
  expect((await post('/users/reset-password', stale)).status).toBe(400);
  expect(await verify(await mailedToken(central, 'New@example.com', KIND))).toEqual([200, true]);
  const changed = { balance: 10, email: 'New@example.com', email_verified: true };
  expect(await me(body.api_key)).toMatchObject(changed);
  expect(await notices()).toEqual([true, true]);
  expect([await logsIn(BODY.email), await logsIn('new@example.com')]).toEqual([false, true]);
});

it('rejects the token of a change after a newer change, a reset and a change of the password', async () => {
  const { body, put } = await confirmed();
  const rejected = [400, 'bad_request'];
  const tokenTo = (email: string) => mailedToken(central, email, KIND);
  await put({ email: 'first@example.com' });
  const first = await tokenTo('first@example.com');
  await put({ email: 'second@example.com' });
  const second = await tokenTo('second@example.com');
  expect(await verify(first)).toEqual(rejected);
  // The former token stays invalid when its address is requested again.
  await put({ email: 'first@example.com' });
  expect([await verify(first), await verify(second)]).toEqual([rejected, rejected]);

  const third = await tokenTo('first@example.com');
  await post('/users/request-reset-password', { email: BODY.email });
  const reset = await mailedToken(central, BODY.email, 'password-reset');
  const changed = await post('/users/reset-password', { token: reset, new_password: 'horse two' });
  expect(changed.status).toBe(200);
  expect(await verify(third)).toEqual(rejected);

  const { token } = (await post('/users/login', { ...BODY, password: 'horse two' })).body;
  const later = (change: object) =>
    central.call('PUT', '/users/me', {
      headers: { authorization: `Bearer ${token}` },
      body: { current_password: 'horse two', ...change },
    });
  await later({ email: 'third@example.com' });
  await later({ new_password: 'horse three' });
  expect(await verify(await tokenTo('third@example.com'))).toEqual(rejected);
  expect(await me(body.api_key)).toMatchObject({ email: BODY.email, email_verified: true });
});

it('withdraws a change when the present address is requested with the password', async () => {
  const { body, put } = await confirmed();
  const tokenTo = (email: string) => mailedToken(central, email, KIND);
  await put({ email: 'first@example.com' });
  // A client that sends the whole record does not withdraw the change.
  const { email } = await me(body.api_key);
  await put({ email, current_password: undefined, name: 'Ada' });
  const headers = { 'x-api-key': body.api_key };
  const last = async () => (await central.call('GET', '/users/me/events', { headers })).body;
  expect(JSON.stringify(await last())).not.toContain('withdrawn');
  expect((await put({ email })).status).toBe(200);
  expect(JSON.stringify(await last())).toContain('e-mail address change withdrawn');
  expect(await verify(await tokenTo('first@example.com'))).toEqual([400, 'bad_request']);
  expect(await me(body.api_key)).toMatchObject({ email, email_verified: true });
});

it('rejects the token of a change after a day, after its use, and after the account was deleted', async () => {
  const { put } = await confirmed();
  const rejected = [400, 'bad_request'];
  const tokenTo = (email: string) => mailedToken(central, email, KIND);
  await put({ email: 'first@example.com' });
  const first = await tokenTo('first@example.com');
  await central.clock.advance(24 * 60 * 60 * 1000);
  expect(await verify(first)).toEqual(rejected);

  await put({ email: 'second@example.com' });
  const second = await tokenTo('second@example.com');
  expect([await verify(second), await verify(second)]).toEqual([[200, true], rejected]);

  const { token: session } = (await post('/users/login', { ...BODY, email: 'second@example.com' }))
    .body;
  const headers = { authorization: `Bearer ${session}` };
  const body = { email: 'third@example.com', current_password: BODY.password };
  await central.call('PUT', '/users/me', { headers, body });
  const third = await tokenTo('third@example.com');
  expect((await central.call('DELETE', '/users/me', { headers })).status).toBe(200);
  expect(await verify(third)).toEqual(rejected);
  expect((await post('/users', { ...BODY, email: 'third@example.com' })).status).toBe(200);
  expect(await verify(third)).toEqual(rejected);
});

it('does not reserve a requested address: the account that confirms it first has it', async () => {
  const { body, put } = await confirmed();
  await put({ email: 'wanted@example.com' });
  const token = await mailedToken(central, 'wanted@example.com', KIND);
  const other = await post('/users', { ...BODY, email: 'wanted@example.com' });
  expect(other.status).toBe(200);
  // The token is bound to the account that requested it, and cannot set an address that another account has.
  expect(await verify(token)).toEqual([400, 'bad_request']);
  expect(await me(body.api_key)).toMatchObject({ email: BODY.email });
  expect(await me(other.body.api_key)).toMatchObject({ email_verified: false });
});

it('rejects the token of a former address', async () => {
  await post('/users', BODY);
  const token = await mailedToken(central, BODY.email, KIND);
  const { token: session } = (await post('/users/login', BODY)).body;
  await central.call('PUT', '/users/me', {
    headers: { authorization: `Bearer ${session}` },
    body: { email: 'new@example.com', current_password: BODY.password },
  });
  expect(await verify(token)).toEqual([400, 'bad_request']);
});

it('grants no second credit to a new account with the same address', async () => {
  await post('/users', BODY);
  await verify(await mailedToken(central, BODY.email, KIND));
  const { token: session } = (await post('/users/login', BODY)).body;
  const headers = { authorization: `Bearer ${session}` };
  expect((await central.call('DELETE', '/users/me', { headers })).status).toBe(200);
  const { body } = await post('/users', BODY);
  await verify(await mailedToken(central, BODY.email, KIND));
  expect(await me(body.api_key)).toMatchObject({ balance: 0, email_verified: true });
  const stored = await central.ports.db.selectFrom('signup_credits').selectAll().execute();
  expect(JSON.stringify(stored)).not.toContain('ada@');
});

it('rejects rentals until the address is verified', async () => {
  const market = await createTestMarket({ verifyEmailAtSignup: false });
  try {
    const node = await market.verifiedNode();
    const renter = await market.renter();
    const refused = await market.rent(renter, node.id);
    expect([refused.status, refused.body.error.code]).toEqual([403, 'email_not_verified']);
    const token = await mailedToken(market, renter.email, KIND);
    await market.call('POST', '/auth/verify-email', { body: { token } });
    expect((await market.rent(renter, node.id)).status).toBe(200);
  } finally {
    await market.close();
  }
});

it('serves the mail outbox only to clients on the same host', async () => {
  await post('/users', BODY);
  const ask = (headers: Record<string, string>, remoteAddress = '127.0.0.1') =>
    central.server.inject({ method: 'GET', url: '/api/_local/outbox', headers, remoteAddress });
  for (const [headers, address, status] of [
    [{ host: 'localhost:8000' }, '127.0.0.1', 200],
    [{ host: '[::1]:8000' }, '::1', 200],
    [{ host: '127.0.0.1' }, '::ffff:127.0.0.1', 200],
    [{ host: 'localhost' }, '192.168.1.7', 404],
    [{ host: 'rebound.example' }, '127.0.0.1', 404],
    [{ host: 'localhost', 'x-forwarded-for': '127.0.0.1' }, '127.0.0.1', 404],
    [{ host: 'localhost', via: '1.1 proxy' }, '127.0.0.1', 404],
    [{ host: 'localhost', origin: 'https://evil.example' }, '127.0.0.1', 404],
  ] as const) {
    const answer = await ask(headers, address);
    expect([headers, address, answer.statusCode]).toEqual([headers, address, status]);
    if (status === 404) expect(answer.body).not.toContain(BODY.email);
  }
  const { body } = await central.call('GET', '/openapi.json');
  expect(Object.keys(body.paths).filter((path) => path.includes('_local'))).toEqual([]);
});
