import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  createTestCentral,
  type TestAccount,
  type TestCentral,
} from '../../../../test/fakes/scenes/central-fixture.ts';
import { payIn, testCause } from '../../../../test/fakes/scenes/wallet.ts';
import { placeHold } from '../ledger/hold.service.ts';
import { walletOf } from '../ledger/wallet.service.ts';

const USD = 1_000_000;
/** Sign-up credit of every account. */
const GRANTED = 10;

let central: TestCentral;
let ada: TestAccount;
let bob: TestAccount;
beforeEach(async () => {
  central = await createTestCentral();
  ada = await central.signUp();
  bob = await central.signUp();
});
afterEach(() => central.close());

const pay = (account: TestAccount, usd: number) => payIn(central.ports.db, account.id, usd * USD);

const send = (from: TestAccount, body: object, headers: Record<string, string> = {}) =>
  central.call('POST', '/users/me/transfer-credits', {
    headers: { ...from.key, ...headers },
    body,
  });
const to = (account: TestAccount, amount: number, note?: string) => ({
  recipient_email: account.email,
  amount,
  note,
});
const paidOf = async (account: TestAccount) =>
  (await walletOf(central.ports.db, account.id)).paid / USD;
const history = async (account: TestAccount, path = 'transfer-history') =>
  (await central.call('GET', `/users/me/${path}`, { headers: account.key })).body;

it('transfers paid credit and shows each account its own balance', async () => {
  await pay(ada, 5);
  const sent = await send(ada, to(bob, 1.25, 'thanks'));
  expect([sent.status, sent.body]).toEqual([
    200,
    {
      id: expect.any(String),
      direction: 'sent',
      amount: 1.25,
      note: 'thanks',
      counterparty_email: bob.email,
      status: 'completed',
      balance_after: GRANTED + 3.75,
      created_at: expect.any(String),
      balance: GRANTED + 3.75,
    },
  ]);
  const back = await send(bob, {
    recipient_email: ` ${ada.email.toUpperCase()} `,
    amount: 0.000001,
  });
  expect(back.body.balance).toBe(GRANTED + 1.249999);
  expect(await history(ada)).toMatchObject([
    { direction: 'received', amount: 0.000001, note: null, balance_after: 13.750001 },
    { direction: 'sent', amount: 1.25, counterparty_email: bob.email },
  ]);
  expect(await history(bob, 'transfer-credit-history')).toMatchObject([
    { direction: 'sent', balance_after: GRANTED + 1.249999, counterparty_email: ada.email },
    { direction: 'received', note: 'thanks', balance_after: GRANTED + 1.25 },
  ]);
  const events = await central.call('GET', '/users/me/events', { headers: bob.key });
  expect(events.body.map(({ detail }: { detail: string }) => detail)).toContain('$1.25 received');
});

it('does not transfer granted or held credit, and states the transferable amount', async () => {
  const none = await send(ada, to(bob, 0.01));
  expect(none.body.error.hint).toContain('PUT /users/me/auto-top-up');
  expect([none.status, none.body.error.code]).toEqual([403, 'insufficient_balance']);
  expect(none.body.message).toMatch(
    /^Insufficient balance\. This transfer requires at least \$0\.01\. Your balance is \$0\.00,/,
  );
  await pay(ada, 5);
  // One dollar more than the granted credit of all accounts.
  const hold = (GRANTED + 1) * USD;
  await central.ports.db
    .transaction()
    .execute((tx) => placeHold(tx, ada.id, hold, testCause({ type: 'hold' })));
  expect((await send(ada, to(bob, 4.000001))).status).toBe(403);
  expect((await send(ada, to(bob, 4))).status).toBe(200);
  expect(await paidOf(bob)).toBe(4);
});

it('executes a transfer once per Idempotency-Key, even if the transfer failed', async () => {
  await pay(ada, 5);
  const key = { 'idempotency-key': 'pay-1' };
  const first = await send(ada, to(bob, 2), key);
  const second = await send(ada, to(bob, 2), key);
  expect([second.body, second.headers['idempotent-replayed']]).toEqual([first.body, 'true']);
  expect((await send(ada, to(bob, 3), key)).body.error.code).toBe('idempotency_key_reused');
  expect([await paidOf(ada), await paidOf(bob)]).toEqual([3, 2]);
});

it('rejects a transfer to the sender and to unknown, deleted or unverified recipients', async () => {
  await pay(ada, 5);
  const codes = async (answer: ReturnType<typeof send>) => {
    const { status, body } = await answer;
    return [status, body.error.code];
  };
  expect(await codes(send(ada, to(ada, 1)))).toEqual([400, 'bad_request']);
  expect(await codes(send(ada, { recipient_email: 'no@one.example', amount: 1 }))).toEqual([
    404,
    'not_found',
  ]);
  await central.call('DELETE', '/users/me', { headers: bob.session });
  expect(await codes(send(ada, to(bob, 1)))).toEqual([404, 'not_found']);
  await central.ports.db
    .updateTable('accounts')
    .set({ email_verified_at: null })
    .where('id', '=', ada.id)
    .execute();
  expect(await codes(send(ada, to(bob, 1)))).toEqual([403, 'email_not_verified']);
  expect(await paidOf(ada)).toBe(5);
});

it('does not find accounts by an unverified address', async () => {
  await pay(ada, 5);
  await central.ports.db
    .updateTable('accounts')
    .set({ email_verified_at: null })
    .where('id', '=', bob.id)
    .execute();
  const refused = await send(ada, to(bob, 1));
  const unknown = await send(ada, { recipient_email: 'no@one.example', amount: 1 });
  expect([refused.status, refused.body.error.code, refused.body.message]).toEqual([
    404,
    'not_found',
    unknown.body.message,
  ]);
  expect([await paidOf(ada), await paidOf(bob)]).toEqual([5, 0]);
});

it('does not transfer topped-up credit for a day', async () => {
  const { db, clock } = central.ports;
  await pay(ada, 5);
  await db
    .insertInto('topups')
    .values({
      id: '00000000-0000-4000-8000-000000000001',
      account_id: ada.id,
      processor: 'any',
      external_id: null,
      payment_method_id: 'pm',
      amount_uusd: 4 * USD,
      state: 'succeeded',
      attempts: 1,
      due_at: 0,
      last_error: null,
      created_at: clock.now(),
      updated_at: clock.now(),
    })
    .execute();
  const refused = await send(ada, to(bob, 1.000001));
  expect([refused.status, refused.body.error.hint]).toEqual([
    403,
    'Credit from auto top-ups can be spent at once and transferred 24 hours after the top-up. A payment that the operator records (ledger pay-in) can be transferred at once.',
  ]);
  expect((await send(ada, to(bob, 1))).status).toBe(200);
  await central.clock.advance(24 * 3_600_000 - 1);
  expect((await send(ada, to(bob, 1))).status).toBe(403);
  await central.clock.advance(1);
  expect((await send(ada, to(bob, 4))).status).toBe(200);
});

it('rejects invalid amounts', async () => {
  await pay(ada, 5);
  for (const amount of [0, -1, 0.0000001, 1.1234567, 1e12, 1e300, '1', null]) {
    const { status } = await send(ada, { recipient_email: bob.email, amount });
    expect([amount, status]).toEqual([amount, 422]);
  }
  expect((await send(ada, to(bob, 1, 'x'.repeat(201)))).status).toBe(422);
  expect((await send(ada, to(bob, 1, 'x'.repeat(200)))).status).toBe(200);
});

/** Repeats a transfer for which no database connection became free, as its Retry-After requests. */
async function sendUntilAnswered(from: TestAccount, body: object) {
  for (;;) {
    const answer = await send(from, body);
    if (answer.status !== 503) return answer;
    expect(answer.headers['retry-after']).toBe('5');
  }
}

it('never overdraws with a hundred concurrent transfers in both directions', async () => {
  await pay(ada, 30);
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, index) =>
      index % 10 === 9 ? sendUntilAnswered(bob, to(ada, 0.5)) : sendUntilAnswered(ada, to(bob, 1)),
    ),
  );
  const [left, got] = [await paidOf(ada), await paidOf(bob)];
  expect(left + got).toBe(30);
  expect(Math.min(left, got)).toBeGreaterThanOrEqual(0);
  const done = answers.filter(({ status }) => status === 200).length;
  const refused = answers.filter(({ body }) => body.error?.code === 'insufficient_balance').length;
  expect([done + refused, done >= 30]).toEqual([100, true]);
  const entries = [...(await history(ada)), ...(await history(bob))];
  expect(entries).toHaveLength(2 * done);
});

it('hides the address and the notes of a deleted account', async () => {
  await pay(ada, 5);
  await send(ada, to(bob, 1, 'from me'));
  await central.call('DELETE', '/users/me', { headers: ada.session });
  expect(await history(bob)).toMatchObject([{ counterparty_email: '', note: null, amount: 1 }]);
});
