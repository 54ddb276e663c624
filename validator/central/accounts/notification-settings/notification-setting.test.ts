import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestAccount,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { wants } from './notification-setting.service.ts';

const ON = {
  low_balance: true,
  notice_period: true,
  pod_failed: true,
  scheduled_removal: true,
  machine_request: true,
};

let central: TestCentral;
let account: TestAccount;
beforeAll(async () => {
  central = await createTestCentral();
  account = await central.signUp();
});
afterAll(() => central.close());

const read = () => central.call('GET', '/users/me/notification', { headers: account.key });
const put = (body: object) =>
  central.call('PUT', '/users/me/notification', { headers: account.key, body });
const rows = () => central.ports.db.selectFrom('notification_settings').selectAll().execute();

it('returns every setting as on by default, and creates no row', async () => {
  expect((await read()).body).toEqual({ ...ON, is_default: true });
  expect(await rows()).toEqual([]);
  expect(await wants(central.ports.db, account.id, 'pod_failed')).toBe(true);
});

it("changes only the flags that are sent, in the account's single row", async () => {
  const first = await put({ pod_failed: false, machine_request: null });
  expect([first.status, first.body]).toEqual([
    200,
    expect.objectContaining({ ...ON, pod_failed: false, user_id: account.id }),
  ]);
  await central.clock.advance(5_000);
  const second = await put({ low_balance: false });
  expect(second.body).toMatchObject({
    ...ON,
    pod_failed: false,
    low_balance: false,
    id: first.body.id,
    created_at: first.body.created_at,
  });
  expect(second.body.updated_at > first.body.updated_at).toBe(true);
  expect((await read()).body).toEqual({
    ...ON,
    pod_failed: false,
    low_balance: false,
    is_default: false,
  });
  expect(await wants(central.ports.db, account.id, 'pod_failed')).toBe(false);
  expect(await wants(central.ports.db, account.id, 'notice_period')).toBe(true);
});

it('rejects values that are not booleans', async () => {
  expect((await put({ low_balance: 'yes' })).status).toBe(422);
});

it('deletes the settings with their account', async () => {
  await central.call('DELETE', '/users/me', { headers: account.session });
  expect(await rows()).toEqual([]);
});
