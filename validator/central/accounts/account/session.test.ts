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

/** Begins a session with a ticket of another session. */
async function byTicketOf(headers: Record<string, string>) {
  await central.clock.advance(1);
  const { ticket } = (await central.call('POST', '/auth/tickets', { headers })).body;
  const { body } = await central.call('POST', '/auth/exchange-ticket', { body: { ticket } });
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

it('ends the sessions that tickets of a session began, also through each other, and no others', async () => {
  const phone = await logIn('phone');
  const child = await byTicketOf(phone);
  const grandchild = await byTicketOf(child);
  const other = await byTicketOf(account.session);
  const { sessions } = await list(phone);
  const { id } = sessions.find(({ client }: { client: string | null }) => client === 'phone');
  const end = () =>
    central.call('DELETE', `/users/me/sessions/${id}`, { headers: account.session });
  expect((await list(child)).total).toBe(5);
  expect((await end()).status).toBe(200);
  expect((await end()).status).toBe(404);
  for (const ended of [phone, child, grandchild]) expect(await statusOf(ended)).toBe(401);
  expect([await statusOf(account.session), await statusOf(other)]).toEqual([200, 200]);

  expect((await central.call('POST', '/auth/logout', { headers: other })).status).toBe(200);
  expect([await statusOf(account.session), await statusOf(other)]).toEqual([200, 401]);
  const last = await byTicketOf(account.session);
  await central.call('POST', '/auth/logout', { headers: account.session });
  expect(await statusOf(last)).toBe(401);
});

it('leaves no session of a ticket that is exchanged while its creator ends', async () => {
  for (let round = 0; round < 10; round += 1) {
    const creator = await logIn();
    const { ticket } = (await central.call('POST', '/auth/tickets', { headers: creator })).body;
    const [{ body, status }] = await Promise.all([
      central.call('POST', '/auth/exchange-ticket', { body: { ticket } }),
      central.call('POST', '/auth/logout', { headers: creator }),
    ]);
    if (status === 200) expect(await statusOf({ authorization: `Bearer ${body.token}` })).toBe(401);
  }
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
