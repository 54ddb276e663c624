import { afterEach, beforeEach, expect, it } from 'vitest';
import { createLog } from '#shared/runtime/log.ts';
import {
  createTestCentral,
  type TestAccount,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { mailedToken, mailsTo } from '../../../../test/fakes/scenes/outbox.ts';
import { createMailRequests } from './mail-requests.ts';
import { createPasswordReset, type PasswordResetDeps } from './password-reset.ts';

const NEW = 'a new password';

let central: TestCentral;
let account: TestAccount;
beforeEach(async () => {
  central = await createTestCentral();
  account = await central.signUp();
});
afterEach(() => central.close());

const request = (email: string) =>
  central.call('POST', '/users/request-reset-password', { body: { email } });
const reset = async (token: string, password = NEW) => {
  const body = { token, new_password: password };
  const answer = await central.call('POST', '/users/reset-password', { body });
  return [answer.status, answer.body.error?.code ?? answer.body.success];
};
const logIn = async (password: string) =>
  (await central.call('POST', '/users/login', { body: { email: account.email, password } })).status;
const mailed = () => mailedToken(central, account.email, 'password-reset');
const me = async (headers: Record<string, string>) =>
  (await central.call('GET', '/users/me', { headers })).status;

it('sets a password with the mailed token, ends sessions and keeps API keys valid', async () => {
  await request(account.email.toUpperCase());
  expect(await reset(await mailed())).toEqual([200, true]);
  expect([await logIn(account.password), await logIn(NEW)]).toEqual([401, 200]);
  expect([await me(account.session), await me(account.key)]).toEqual([401, 200]);
  expect((await mailsTo(central, account.email)).map(({ kind }) => kind).toSorted()).toEqual([
    'password-changed',
    'password-reset',
  ]);
  const { body } = await central.call('GET', '/users/me/events', { headers: account.key });
  expect(body[0]).toMatchObject({ event_type: 'account', detail: 'password reset by mail' });
});

it('accepts each token once within an hour, and rejects tokens that were mailed before a password change', async () => {
  await request(account.email);
  const first = await mailed();
  const all = await Promise.all(Array.from({ length: 5 }, () => reset(first)));
  expect(all.filter(([status]) => status === 200)).toHaveLength(1);
  expect(await reset(first)).toEqual([400, 'bad_request']);

  const other = await central.signUp();
  for (const { email } of [account, other]) await request(email);
  const late = await mailed();
  const inTime = await mailedToken(central, other.email, 'password-reset');
  await central.clock.advance(3_600_000 - 1);
  expect(await reset(inTime)).toEqual([200, true]);
  await central.clock.advance(1);
  expect(await reset(late)).toEqual([400, 'bad_request']);

  await request(account.email);
  const overtaken = await mailed();
  const { token } = (
    await central.call('POST', '/users/login', { body: { email: account.email, password: NEW } })
  ).body;
  await central.call('PUT', '/users/me', {
    headers: { authorization: `Bearer ${token}` },
    body: { new_password: 'chosen by hand', current_password: NEW },
  });
  expect(await reset(overtaken)).toEqual([400, 'bad_request']);
  expect(await logIn('chosen by hand')).toBe(200);
});

it('returns the same response whether or not the account exists', async () => {
  const { body: known } = await request(account.email);
  const { status, body: unknown } = await request('nobody@example.com');
  expect([status, unknown]).toEqual([200, known]);
  expect(await mailsTo(central, 'nobody@example.com')).toEqual([]);
});

it('responds before it queries the account', async () => {
  const begun: string[] = [];
  const db = {
    transaction() {
      begun.push('transaction');
      throw new Error('no database');
    },
  } as unknown as PasswordResetDeps['db'];
  const mailRequests = createMailRequests({ log: createLog({ name: 'test', level: 'silent' }) });
  const deps = { db, mailRequests, options: {} } as Partial<PasswordResetDeps>;
  const { request } = createPasswordReset(deps as PasswordResetDeps);
  await expect(request(account.email)).resolves.toMatchObject({ success: true });
  expect(begun).toEqual([]);
  await mailRequests.settle();
  expect(begun).toEqual(['transaction']);
});

it('rejects bad passwords and tokens of another purpose without using them', async () => {
  await request(account.email);
  const token = await mailed();
  expect(await reset(token, 'short')).toEqual([422, 'validation_error']);
  const body = { token };
  expect((await central.call('POST', '/auth/verify-email', { body })).status).toBe(400);
  expect(await reset('unknown')).toEqual([400, 'bad_request']);
  expect(await reset(token)).toEqual([200, true]);
});

it('ends other sessions when the password is changed in the profile', async () => {
  const { email, password } = account;
  const other = (await central.call('POST', '/users/login', { body: { email, password } })).body;
  const body = { new_password: NEW, current_password: password };
  await central.call('PUT', '/users/me', { headers: account.session, body });
  expect(await me(account.session)).toBe(200);
  expect(await me({ authorization: `Bearer ${other.token}` })).toBe(401);
  expect((await mailsTo(central, email)).map(({ kind }) => kind)).toEqual(['password-changed']);
});
