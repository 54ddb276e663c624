import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestAccount,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';

let central: TestCentral;
let account: TestAccount;
beforeAll(async () => {
  central = await createTestCentral();
  account = await central.signUp();
});
afterAll(() => central.close());

const put = (body: object) =>
  central.call('PUT', '/users/me/referral-payout-method', { headers: account.key, body });
const stored = () =>
  central.ports.db
    .selectFrom('accounts')
    .select(['referral_payout_method', 'referral_crypto_address', 'referral_crypto_network'])
    .executeTakeFirst();
const CRYPTO = { crypto_address: '5Grwva-EF', crypto_network: 'bittensor' };

it('accepts crypto with address and network, and clears both when another method is chosen', async () => {
  const set = await put({ referral_payout_method: 'crypto', ...CRYPTO });
  expect([set.status, set.body]).toMatchObject([
    200,
    { id: account.id, referral_payout_method: 'crypto' },
  ]);
  expect(await stored()).toMatchObject({ referral_crypto_address: '5Grwva-EF' });
  const back = await put({ referral_payout_method: 'balance', ...CRYPTO });
  expect(back.body).toMatchObject({ referral_payout_method: 'balance' });
  expect(await stored()).toEqual({
    referral_payout_method: 'balance',
    referral_crypto_address: null,
    referral_crypto_network: null,
  });
});

it.each([
  [{ referral_payout_method: 'crypto', crypto_address: '5Grwva-EF' }, 400],
  [{ referral_payout_method: 'crypto', crypto_network: 'bittensor' }, 400],
  [{ referral_payout_method: 'stripe_connect' }, 400],
  [{ referral_payout_method: 'cheque' }, 422],
  [{ referral_payout_method: 'crypto', ...CRYPTO, crypto_address: 'a b\nc d e f' }, 422],
  [{}, 422],
])('rejects %j with %i and changes nothing', async (body, status) => {
  expect((await put(body)).status).toBe(status);
  expect(await stored()).toMatchObject({ referral_payout_method: 'balance' });
});
