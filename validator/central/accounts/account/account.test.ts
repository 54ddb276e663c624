import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { createTestMarket } from '../../../../test/fakes/scenes/market-fixture.ts';

const OFFICIAL_ID = '1948937e-5049-47ad-8e26-bcf1a4549d70';
const BODY = { email: 'Ada@Example.com', password: 'correct horse' };

let central: TestCentral;
beforeEach(async () => {
  central = await createTestCentral();
});
afterEach(() => central.close());

const post = (path: string, body: object) => central.call('POST', path, { body });

it('creates an account with credit and an API key by POST /users and by POST /auth/signup', async () => {
  const { status, body } = await post('/users', { ...BODY, name: 'Ada' });
  expect(status).toBe(200);
  expect(body).toEqual({
    msg: 'success',
    api_key: expect.stringMatching(/^sk_[A-Za-z0-9_-]{43}$/),
    signup_credit_granted: true,
    user: {
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      name: 'Ada',
      email: 'Ada@Example.com',
      balance: 10,
      unposted: 0,
      held: 0,
      available: 10,
      burn_per_hour: 0,
      runs_out_at: null,
      stripe_customer_id: null,
      stripe_connect_account_id: null,
      stripe_onboarding_completed: false,
      referral_payout_method: 'balance',
      pending_referral_balance: 0,
      email_verified: true,
      discord_id: null,
      disable_incoming_connections: false,
      avatar_url: null,
      company_name: null,
      validator_hotkey: null,
      admin: false,
      internal_member: false,
      referral_code: expect.stringMatching(/^.{8}$/),
      default_template_id: null,
      created_at: '2027-01-15T08:00:00.000000',
      updated_at: '2027-01-15T08:00:00.000000',
      workspace: null,
    },
  });
  const me = await central.call('GET', '/users/me', { headers: { 'X-API-KEY': body.api_key } });
  expect(me.body).toEqual(body.user);
  const second = await post('/auth/signup/', { email: 'b@example.com', password: '12345678' });
  expect([second.status, second.body.user.name]).toEqual([200, 'b']);
});

it('rejects an e-mail address that is in use, ignoring case, also for concurrent requests', async () => {
  await post('/users', BODY);
  const taken = await post('/users', { ...BODY, email: ' ada@EXAMPLE.com ' });
  expect(taken.status).toBe(400);
  expect(taken.body).toMatchObject({
    error: { code: 'bad_request' },
    detail: 'User already exists with the same email',
    message: 'User already exists with the same email',
  });
  const twin = { email: 'twin@example.com', password: 'correct horse' };
  const statuses = (await Promise.all([post('/users', twin), post('/users', twin)])).map(
    ({ status }) => status,
  );
  expect(statuses.toSorted()).toEqual([200, 400]);
  const rows = await central.ports.db.selectFrom('api_keys').select('id').execute();
  expect(rows).toHaveLength(2);
});

it.each([
  {},
  { email: 'no-address', password: 'correct horse' },
  { email: `${'x'.repeat(65)}@example.com`, password: 'correct horse' },
  { email: 'a@example.com', password: 'short' },
  { email: 'a@example.com', password: 'x'.repeat(129) },
  { email: 'a@example.com' },
  { email: 'a@example.com', password: 'correct horse', name: '' },
])('answers 422 to the sign-up %j', async (body) => {
  expect((await post('/users', body)).status).toBe(422);
});

it('grants no credit before the address is verified', async () => {
  await central.close();
  central = await createTestCentral({ verifyEmailAtSignup: false });
  const { body } = await post('/users', BODY);
  expect(body).toMatchObject({
    signup_credit_granted: false,
    user: { balance: 0, email_verified: false },
  });
});

it('issues a session token for seven days, and gives no reason for a failed log-in', async () => {
  const { body: created } = await post('/users', BODY);
  const { status, body } = await post('/users/login', { ...BODY, email: 'ADA@example.com' });
  expect([status, body.user, body.expires_at]).toEqual([
    200,
    created.user,
    '2027-01-22T08:00:00.000000',
  ]);
  const me = await central.call('GET', '/users/me', {
    headers: { authorization: `Bearer ${body.token}` },
  });
  expect(me.status).toBe(200);
  const texts = new Set<string>();
  for (const wrong of [
    { ...BODY, password: 'wrong' },
    { ...BODY, email: 'nobody@example.com' },
    { ...BODY, email: 'no-address' },
  ]) {
    const refused = await post('/users/login', wrong);
    expect([refused.status, refused.body.error.code]).toEqual([401, 'unauthorized']);
    texts.add(`${refused.body.message} ${refused.body.error.hint}`);
  }
  expect(texts.size).toBe(1);
});

it('changes name and default template by key or session, and shows the preference', async () => {
  const { key: headers } = await central.signUp();
  const put = (body: object) => central.call('PUT', '/users/me', { headers, body });
  const preference = async () =>
    (await central.call('GET', '/users/me/preference', { headers })).body;
  const none = {
    default_template_id: null,
    default_template: null,
    default_termination_hours: {},
  };
  expect(await preference()).toEqual(none);
  await central.clock.advance(1_000);
  const changed = await put({ name: 'New', preference: { default_template_id: OFFICIAL_ID } });
  expect([changed.status, changed.body.name, changed.body.default_template_id]).toEqual([
    200,
    'New',
    OFFICIAL_ID,
  ]);
  expect(changed.body.updated_at).toBe('2027-01-15T08:00:01.000000');
  expect(await preference()).toMatchObject({
    default_template_id: OFFICIAL_ID,
    default_template: { id: OFFICIAL_ID, name: 'Podwright base (offline)' },
  });
  expect((await put({ name: 'Newer' })).body.default_template_id).toBe(OFFICIAL_ID);
  const path = '/users/me/preference/default-template';
  const cleared = await central.call('DELETE', path, { headers });
  expect([cleared.status, cleared.body]).toEqual([200, none]);
  expect((await put({ preference: { default_template_id: OFFICIAL_ID } })).status).toBe(200);
  const nulled = await put({ preference: { default_template_id: null } });
  expect(nulled.body.default_template_id).toBeNull();

  const stranger = await central.signUp();
  const body = { name: 'x', docker_image: 'ubuntu' };
  const { body: otherTemplate } = await central.call('POST', '/templates', {
    headers: stranger.key,
    body,
  });
  const refused = await put({ preference: { default_template_id: otherTemplate.id } });
  expect([refused.status, refused.body.error.code]).toEqual([404, 'template_not_found']);
});

it('shows no default template once it is deleted', async () => {
  const { key: headers } = await central.signUp();
  const body = { name: 'x', docker_image: 'ubuntu' };
  const { body: template } = await central.call('POST', '/templates', { headers, body });
  const preference = { default_template_id: template.id };
  await central.call('PUT', '/users/me', { headers, body: { preference } });
  await central.call('DELETE', `/templates/${template.id}`, { headers });
  const shown = await central.call('GET', '/users/me/preference', { headers });
  expect(shown.body).toMatchObject({ default_template_id: null, default_template: null });
});

it('changes e-mail and password only with the password and a session', async () => {
  const { key, session, password, email } = await central.signUp();
  const put = async (headers: Record<string, string>, body: object) => {
    const answer = await central.call('PUT', '/users/me', { headers, body });
    return [answer.status, answer.body.error?.code ?? answer.body.email];
  };
  const change = { email: 'new@example.com', current_password: password };
  expect(await put(key, change)).toEqual([403, 'forbidden']);
  expect(await put({ ...key, ...session }, change)).toEqual([403, 'forbidden']);
  expect(await put(key, { email })).toEqual([200, email]);
  expect(await put(session, { email: 'new@example.com' })).toEqual([422, 'validation_error']);
  expect(await put(session, { ...change, current_password: 'wrong' })).toEqual([403, 'forbidden']);
  const taken = (await central.signUp()).email;
  expect(await put(session, { ...change, email: taken })).toEqual([400, 'bad_request']);
  expect(await put(session, change)).toEqual([200, 'new@example.com']);
  const secret = { new_password: 'another secret', current_password: password };
  expect(await put(session, { ...secret, new_password: 'short' })).toEqual([
    422,
    'validation_error',
  ]);
  expect(await put(session, secret)).toEqual([200, 'new@example.com']);
  const logIn = async (given: string) =>
    (await post('/users/login', { email: 'new@example.com', password: given })).status;
  expect(await logIn(password)).toBe(401);
  expect(await logIn('another secret')).toBe(200);
});

it('keeps the confirmed address until the new one is confirmed, if new addresses must be confirmed', async () => {
  await central.close();
  central = await createTestCentral({ verifyEmailAtSignup: false });
  const { id, session: headers, password, email } = await central.signUp();
  const { db } = central.ports;
  await db.updateTable('accounts').set({ email_verified_at: 1 }).where('id', '=', id).execute();
  const put = (body: object) => central.call('PUT', '/users/me', { headers, body });
  const upper = await put({ email: email.toUpperCase(), current_password: password });
  expect(upper.body.email_verified).toBe(true);
  const other = await put({ email: 'other@example.com', current_password: password });
  expect(other.body).toMatchObject({ email: email.toUpperCase(), email_verified: true });
});

it('changes and clears profile fields, and keeps absent ones', async () => {
  const { key: headers } = await central.signUp();
  const put = (body: object) => central.call('PUT', '/users/me', { headers, body });
  const profile = {
    company_name: 'Analytical Engines',
    avatar_url: 'https://cdn.example/me.png',
    disable_incoming_connections: true,
  };
  expect((await put(profile)).body).toMatchObject(profile);
  expect((await put({ name: 'Ada' })).body).toMatchObject({ ...profile, name: 'Ada' });
  const none = { company_name: null, avatar_url: null };
  expect((await put(none)).body).toMatchObject({ ...none, disable_incoming_connections: true });
  for (const wrong of [
    { avatar_url: 'javascript:alert(1)' },
    { avatar_url: 'me.png' },
    { company_name: 'x'.repeat(201) },
    { disable_incoming_connections: 'yes' },
    { preference: { default_termination_hours: { fax: 3 } } },
    { preference: { default_termination_hours: { ui: '3' } } },
  ]) {
    expect([wrong, (await put(wrong)).status]).toEqual([wrong, 422]);
  }
});

it('stores default rental hours by source, and applies them to rentals without termination_hours', async () => {
  const market = await createTestMarket();
  try {
    const node = await market.verifiedNode({ gpus: 2, minimum: 1 });
    const renter = await market.renter();
    const put = (hours: object) =>
      market.call('PUT', '/users/me', {
        headers: renter.key,
        body: { preference: { default_termination_hours: hours } },
      });
    expect((await put({ ui: 0.5 })).body.error.code).toBe('ttl_invalid');
    await put({ cli: 5, ui: 7 });
    await put({ ui: null, sdk: 9 });
    const path = '/users/me/preference';
    const { body } = await market.call('GET', path, { headers: renter.key });
    expect(body.default_termination_hours).toEqual({ cli: 5, sdk: 9 });
    const one = { gpu_count: 1 };
    const byCli = await market.rent(renter, node.id, one, { 'x-source': 'cli' });
    expect(byCli.body).toMatchObject({ source: 'cli', termination_hours: 5 });
    const stated = { gpu_count: 1, termination_hours: 2 };
    const byRequest = await market.rent(renter, node.id, stated, { 'x-source': 'cli' });
    expect(byRequest.body.termination_hours).toBe(2);
  } finally {
    await market.close();
  }
});

it('rents with the default template when the request names none', async () => {
  const market = await createTestMarket();
  try {
    const [first, second] = [await market.verifiedNode(), await market.verifiedNode()];
    const renter = await market.renter();
    const without = { template_id: null };
    const refused = await market.rent(renter, first.id, without);
    expect([refused.status, refused.body.error.code]).toEqual([400, 'template_invalid']);
    const preference = { default_template_id: OFFICIAL_ID };
    await market.call('PUT', '/users/me', { headers: renter.key, body: { preference } });
    const rented = await market.rent(renter, second.id, without);
    expect([rented.status, rented.body.template_id]).toEqual([200, OFFICIAL_ID]);
  } finally {
    await market.close();
  }
});

it("returns the caller's IP address, and a forwarded address only from a trusted proxy", async () => {
  const headers = { 'x-forwarded-for': '203.0.113.9' };
  expect((await central.call('GET', '/users/get-ip', { headers })).body).toEqual({
    ip: '127.0.0.1',
  });
  await central.close();
  central = await createTestCentral({ trustedProxies: ['127.0.0.1'] });
  expect((await central.call('GET', '/users/get-ip', { headers })).body).toEqual({
    ip: '203.0.113.9',
  });
  await central.close();
  central = await createTestCentral({ trustedProxies: ['127.0.0.0/8', '198.51.100.0/24'] });
  const chain = { 'x-forwarded-for': '1.1.1.1, 203.0.113.9, 198.51.100.4' };
  expect((await central.call('GET', '/users/get-ip', { headers: chain })).body).toEqual({
    ip: '203.0.113.9',
  });
});

it('finds accounts only by their exact e-mail address', async () => {
  await post('/users', BODY);
  const exists = async (email: string) =>
    (await central.call('GET', `/users/search?email=${encodeURIComponent(email)}`)).body;
  expect(await exists('ada@example.com')).toEqual({ exists: true });
  expect(await exists('ada@')).toEqual({ exists: false });
  expect(await exists('%')).toEqual({ exists: false });
  expect((await central.call('GET', '/users/search')).status).toBe(422);
});
