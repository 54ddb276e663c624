import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestAccount,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';

let central: TestCentral;
let account: TestAccount;
beforeEach(async () => {
  central = await createTestCentral();
  account = await central.signUp();
});
afterEach(() => central.close());

async function logIn(client?: string) {
  await central.clock.advance(1);
  const { body } = await central.call('POST', '/users/login', {
    body: { email: account.email, password: account.password },
    headers: client === undefined ? {} : { 'user-agent': client },
  });
  return { authorization: `Bearer ${body.token}` };
}

const list = async (headers: Record<string, string>, query = '') =>
  (await central.call('GET', `/users/me/sessions${query}`, { headers })).body;
const statusOf = async (headers: Record<string, string>) =>
  (await central.call('GET', '/users/me', { headers })).status;

it('lists the valid sessions of the account, newest first, with their programs', async () => {
  const phone = await logIn(`Phone ${'x'.repeat(300)}`);
  const { sessions, total } = await list(phone);
  expect(total).toBe(2);
  expect(sessions[0]).toMatchObject({ current: true });
  expect(sessions[0].client).toMatch(/^Phone x{194}$/);
  expect(sessions[1]).toMatchObject({ current: false });
  const second = await list(phone, '?page=2&limit=1');
  expect([second.total, second.sessions]).toEqual([2, [sessions[1]]]);
  const stranger = await central.signUp();
  expect((await list(stranger.session)).total).toBe(1);
});

it('ends a session, all other sessions, and the session of the request', async () => {
  const [phone, tablet] = [await logIn('phone'), await logIn('tablet')];
  const [, { id }] = (await list(tablet)).sessions;
  const end = (headers: Record<string, string>) =>
    central.call('DELETE', `/users/me/sessions/${id}`, { headers });
  expect((await end((await central.signUp()).session)).body.error.code).toBe('not_found');
  expect((await end(tablet)).status).toBe(200);
  expect((await end(tablet)).status).toBe(404);
  expect([await statusOf(phone), await statusOf(tablet)]).toEqual([401, 200]);

  expect((await central.call('DELETE', '/users/me/sessions', { headers: tablet })).status).toBe(
    200,
  );
  expect([await statusOf(account.session), await statusOf(tablet)]).toEqual([401, 200]);

  expect((await central.call('POST', '/auth/logout', { headers: tablet })).status).toBe(200);
  expect(await statusOf(tablet)).toBe(401);
});

it('does not let an API key read or end sessions', async () => {
  for (const [method, path] of [
    ['GET', '/users/me/sessions'],
    ['DELETE', '/users/me/sessions'],
    ['POST', '/auth/logout'],
  ] as const) {
    const answer = await central.call(method, path, { headers: account.key });
    expect([path, answer.body.error.code]).toEqual([path, 'forbidden']);
  }
});
