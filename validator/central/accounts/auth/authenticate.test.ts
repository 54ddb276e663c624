import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';
const UNKNOWN_KEY = { 'x-api-key': `sk_${'x'.repeat(43)}` };
const DAY_MS = 24 * 60 * 60 * 1000;

let central: TestCentral;
beforeEach(async () => {
  central = await createTestCentral();
});
afterEach(() => central.close());

it('checks the credential before path, body and resource', async () => {
  const { key } = await central.signUp();
  const refusal = async (path: string, headers: Record<string, string>, body?: object) => {
    const sent = body === undefined ? { headers } : { headers, body };
    const answer = await central.call(body === undefined ? 'GET' : 'POST', path, sent);
    return [answer.status, answer.body.error.code];
  };
  expect(await refusal(`/ssh-keys/${UNKNOWN_ID}`, UNKNOWN_KEY)).toEqual([401, 'unauthorized']);
  expect(await refusal(`/ssh-keys/${UNKNOWN_ID}`, key)).toEqual([404, 'not_found']);
  expect(await refusal('/ssh-keys/no-uuid', UNKNOWN_KEY)).toEqual([401, 'unauthorized']);
  expect(await refusal('/ssh-keys/no-uuid', key)).toEqual([422, 'validation_error']);
  expect(await refusal('/ssh-keys', {}, { name: 1 })).toEqual([401, 'unauthorized']);
  expect(await refusal('/ssh-keys', key, { name: 1 })).toEqual([422, 'validation_error']);
  expect(await refusal('/nowhere', UNKNOWN_KEY)).toEqual([404, 'not_found']);
  expect(await refusal('/users/me', {}, {})).toEqual([405, 'method_not_allowed']);
});

it('rejects before reading an oversized or invalid body', async () => {
  const payload = `{"${'x'.repeat(2 * 1024 * 1024)}`;
  const headers = { 'content-type': 'application/json' };
  const url = '/api/ssh-keys';
  const response = await central.server.inject({ method: 'POST', url, headers, payload });
  expect(response.statusCode).toBe(401);
});

it('reports why a key is rejected', async () => {
  const { key, session } = await central.signUp();
  const messageFor = async (headers: Record<string, string>) => {
    const { status, body } = await central.call('GET', '/users/me', { headers });
    return [status, body.message, body.error?.code];
  };
  expect(await messageFor({})).toEqual([401, 'API key header is missing', 'unauthorized']);
  const unknown = [401, 'API key not found', 'unauthorized'];
  expect(await messageFor(UNKNOWN_KEY)).toEqual(unknown);
  expect(await messageFor({ 'x-api-key': `${key['x-api-key']}, ${key['x-api-key']}` })).toEqual(
    unknown,
  );
  expect(await messageFor({ 'x-api-key': "' or 1=1 --" })).toEqual(unknown);
  expect(await messageFor({ 'x-api-key': `Bearer ${key['x-api-key']}` })).toEqual(unknown);

  const [listed] = (await central.call('GET', '/keys', { headers: session })).body;
  const patch = (body: object) =>
    central.call('PATCH', `/keys/${listed.id}`, { headers: session, body });
  const inactive = [401, 'API key is inactive', 'api_key_inactive'];
  await patch({ is_active: false });
  expect(await messageFor(key)).toEqual(inactive);
  await patch({ is_active: true, expires_at: '2027-01-15T08:00:01Z' });
  expect((await messageFor(key))[0]).toBe(200);
  await central.clock.advance(1_000);
  expect(await messageFor(key)).toEqual(inactive);
  await patch({ expires_at: null });
  expect((await messageFor(key))[0]).toBe(200);
  await central.call('DELETE', `/keys/${listed.id}`, { headers: session });
  expect(await messageFor(key)).toEqual(unknown);
});

it('names an invalid API key in a header of an open route, except without a rate limit', async () => {
  const { key, apiKey } = await central.signUp();
  const statusFor = async (url: string, headers: Record<string, string>) =>
    (await central.server.inject({ url, headers })).headers['x-api-key-status'];
  const open = '/api/templates';
  expect(await statusFor(open, {})).toBeUndefined();
  expect(await statusFor(open, key)).toBeUndefined();
  expect(await statusFor(open, { authorization: `Bearer ${apiKey}` })).toBeUndefined();
  expect(await statusFor(open, UNKNOWN_KEY)).toBe('invalid');
  expect(await statusFor(open, { authorization: `Bearer ${UNKNOWN_KEY['x-api-key']}` })).toBe(
    'invalid',
  );
  expect(await statusFor('/docs', UNKNOWN_KEY)).toBe('invalid');
  expect(await statusFor('/api/version', UNKNOWN_KEY)).toBeUndefined();
});

it('accepts an API key, a session, or both if they belong to the same account', async () => {
  const a = await central.signUp();
  const b = await central.signUp();
  const statusFor = async (headers: Record<string, string>) =>
    (await central.call('GET', '/users/me', { headers })).status;
  const bearerKey = { authorization: `Bearer ${a.apiKey}` };
  const badBearer = { authorization: 'Bearer nonsense' };
  const cases: [Record<string, string>, number][] = [
    [a.key, 200],
    [a.session, 200],
    [bearerKey, 200],
    [{ 'X-Api-Key': a.apiKey }, 200],
    [{ authorization: `bearer ${a.token}` }, 200],
    [{ ...a.key, ...a.session }, 200],
    [{ ...a.key, ...bearerKey }, 200],
    [{ ...a.key, authorization: 'Basic eDp5' }, 200],
    [{ ...a.key, authorization: 'Bearer ' }, 200],
    [{ ...a.key, ...b.session }, 401],
    [{ ...b.key, ...bearerKey }, 401],
    [{ ...a.key, ...badBearer }, 401],
    [{ ...a.key, authorization: 'Bearer a b' }, 401],
    [{ ...UNKNOWN_KEY, ...a.session }, 401],
    [badBearer, 401],
    [{ authorization: `Basic ${a.token}` }, 401],
    [{ authorization: a.token }, 401],
  ];
  for (const [headers, status] of cases) {
    expect([headers, await statusFor(headers)]).toEqual([headers, status]);
  }
});

it('rejects an API key on session routes, even together with a session', async () => {
  const { key, session } = await central.signUp();
  const create = (headers: Record<string, string>) =>
    central.call('POST', '/keys', { headers, body: { name: 'second' } });
  expect((await create({})).status).toBe(401);
  for (const headers of [key, { ...key, ...session }]) {
    const { status, body } = await create(headers);
    expect([status, body.error.code]).toEqual([403, 'forbidden']);
  }
  expect((await create(session)).status).toBe(200);
});

it('never answers 401 on open routes, but identifies a caller with a valid credential', async () => {
  const { key } = await central.signUp();
  await central.call('POST', '/templates', {
    headers: key,
    body: { name: 'own', docker_image: 'ubuntu' },
  });
  const countFor = async (headers: Record<string, string>) => {
    const { status, body } = await central.call('GET', '/templates', { headers });
    return [status, body.length];
  };
  expect(await countFor({})).toEqual([200, 3]);
  expect(await countFor(UNKNOWN_KEY)).toEqual([200, 3]);
  expect(await countFor({ ...key, authorization: 'Bearer nonsense' })).toEqual([200, 3]);
  expect(await countFor(key)).toEqual([200, 4]);
  for (const path of ['/', '/version', '/keys/scopes', '/users/get-ip', '/openapi.json']) {
    expect((await central.call('GET', path, { headers: UNKNOWN_KEY })).status).toBe(200);
  }
});

it('rejects a session after it expired or was revoked', async () => {
  const a = await central.signUp();
  const me = (headers: Record<string, string>) => central.call('GET', '/users/me', { headers });
  const other = await central.call('POST', '/users/login', {
    body: { email: a.email, password: a.password },
  });
  const second = { authorization: `Bearer ${other.body.token}` };
  const change = { current_password: a.password, new_password: 'another password' };
  await central.call('PUT', '/users/me', { headers: a.session, body: change });
  expect((await me(second)).status).toBe(401);
  expect((await me(a.session)).status).toBe(200);
  expect((await me(a.key)).status).toBe(200);
  await central.clock.advance(7 * DAY_MS);
  expect((await me(a.session)).status).toBe(401);
  expect((await me(a.key)).status).toBe(200);
});
