import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestAccount,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { createPasswords } from '../auth/password.ts';
import { createSessions } from '../auth/session.ts';
import { createLogIn } from './account.service.ts';

let central: TestCentral;
let account: TestAccount;
beforeEach(async () => {
  central = await createTestCentral();
  account = await central.signUp();
});
afterEach(() => central.close());

/** Logs in and runs `meanwhile` while the password is compared. */
function logInDuring(meanwhile: () => Promise<{ status: number }>) {
  const { db, clock, random, secret } = central.ports;
  const passwords = createPasswords({ random });
  const logIn = createLogIn({
    db,
    sessions: createSessions({ clock, random, secret }),
    passwords: {
      async matches(password, stored) {
        const answer = await passwords.matches(password, stored);
        expect((await meanwhile()).status).toBe(200);
        return answer;
      },
    },
  });
  return logIn(account.email, account.password, null);
}

const headers = () => ({ headers: account.session });
const live = () =>
  central.ports.db.selectFrom('sessions').select('id').where('revoked_at', 'is', null).execute();

it('rejects a log-in if the password is changed during the comparison', async () => {
  const body = { current_password: account.password, new_password: 'battery staple' };
  const change = () => central.call('PUT', '/users/me', { ...headers(), body });
  await expect(logInDuring(change)).rejects.toMatchObject({ code: 'unauthorized' });
  expect(await live()).toHaveLength(1);
});

it('rejects a log-in if the account is deleted during the comparison', async () => {
  const remove = () => central.call('DELETE', '/users/me', headers());
  await expect(logInDuring(remove)).rejects.toMatchObject({ code: 'unauthorized' });
  expect(await live()).toEqual([]);
});
