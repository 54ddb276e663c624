import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createTestDatabase, onPostgres } from '../../../../test/fakes/scenes/central-database.ts';
import { openHolds, testCause } from '../../../../test/fakes/scenes/wallet.ts';
import type { Database, Db } from '../../platform/database/tables.ts';
import type { LedgerAccount, Leg } from './double-entry.ts';
import { placeHold, settleHold, voidHold } from './hold.service.ts';
import { CauseTaken, postGroup, postGroups } from './ledger.service.ts';
import { grantedAccount, paidAccount, spendLegs, walletOf } from './wallet.service.ts';

const A = 'account-a';
const B = 'account-b';

let db: Database;
beforeEach(async () => {
  db = await createTestDatabase();
});
afterEach(() => db.destroy());

const inTx = <T>(work: (tx: Db) => Promise<T>) => db.transaction().execute(work);
const leg = (debit: LedgerAccount, credit: LedgerAccount, amountUusd: number): Leg => ({
  debit,
  credit,
  amountUusd,
});
const topUp = (accountId: string, amountUusd: number) =>
  inTx((tx) =>
    postGroup(tx, [leg('external:topup', paidAccount(accountId), amountUusd)], testCause()),
  );
const grant = (accountId: string, amountUusd: number) =>
  inTx((tx) =>
    postGroup(
      tx,
      [leg('platform:credits_granted', grantedAccount(accountId), amountUusd)],
      testCause(),
    ),
  );
const hold = (accountId: string, amountUusd: number) =>
  inTx((tx) => placeHold(tx, accountId, amountUusd, testCause()));
const code = (work: Promise<unknown>) =>
  work.then(
    () => 'done',
    (error) => error.code ?? error.name,
  );
const transfers = () => db.selectFrom('transfers').selectAll().orderBy('seq').execute();

async function balanceOf(id: LedgerAccount): Promise<number> {
  const rows = await db.selectFrom('ledger_accounts').selectAll().where('id', '=', id).execute();
  return rows.reduce((sum, row) => sum + row.credits_posted - row.debits_posted, 0);
}

describe('posting', () => {
  it('moves money between accounts in groups with causes, and creates accounts on demand', async () => {
    const cause = testCause({ type: 'top-up', id: 'x', actor: 'session', requestId: 'r', atMs: 7 });
    const legs = [
      leg('external:topup', paidAccount(A), 500),
      leg('external:topup', 'platform:fee', 3),
    ];
    const id = await inTx((tx) => postGroup(tx, legs, cause));
    expect(await db.selectFrom('ledger_groups').selectAll().execute()).toEqual([
      {
        id: Number(id),
        cause_type: 'top-up',
        cause_id: 'x',
        is_once: 0,
        actor: 'session',
        request_id: 'r',
        at_ms: 7,
      },
    ]);
    expect(await transfers()).toMatchObject([
      { group_id: Number(id), credit_id: 'user:account-a', amount_uusd: 500, kind: 'direct' },
      { group_id: Number(id), credit_id: 'platform:fee', amount_uusd: 3, pending_seq: null },
    ]);
    expect(await balanceOf(paidAccount(A))).toBe(500);
    expect(await balanceOf('external:topup')).toBe(-503);
  });

  it('posts many groups at once, each under its own cause', async () => {
    const groups = Array.from({ length: 300 }, (_, index) => ({
      legs: [
        leg('external:topup', paidAccount(`many-${index % 7}`), index + 1),
        leg('external:topup', 'platform:fee', 1),
      ],
      cause: testCause({ id: `tick-${index}`, once: true }),
    }));
    const ids = await inTx((tx) => postGroups(tx, groups));
    expect(new Set(ids).size).toBe(300);
    expect((await transfers()).at(-2)).toMatchObject({
      amount_uusd: 300,
      group_id: Number(ids[299]),
    });
    expect(await balanceOf('platform:fee')).toBe(300);
    expect(await balanceOf('external:topup')).toBe(-(300 * 301) / 2 - 300);
    expect(await inTx((tx) => postGroups(tx, []))).toEqual([]);
  });

  it('posts a unique cause once, even if two transactions post the cause concurrently', async () => {
    const cause = testCause({ type: 'callback', id: '7', once: true });
    const post = () =>
      inTx((tx) => postGroup(tx, [leg('external:topup', paidAccount(A), 5)], cause));
    const answers = await Promise.all([code(post()), code(post()), code(post())]);
    expect(answers.toSorted()).toEqual(['CauseTaken', 'CauseTaken', 'done']);
    await expect(post()).rejects.toThrow(CauseTaken);
    expect(await balanceOf(paidAccount(A))).toBe(5);
  });

  it('rejects a posting after which a renter’s balance would be below 0, and rolls the posting back', async () => {
    await topUp(A, 100);
    const spend = (amount: number) =>
      inTx((tx) => postGroup(tx, [leg(paidAccount(A), 'clearing:usage', amount)], testCause()));
    expect(await code(spend(101))).toBe('insufficient_balance');
    expect(await transfers()).toHaveLength(1);
    await hold(A, 60);
    expect(await code(spend(41))).toBe('insufficient_balance');
    expect(await code(spend(40))).toBe('done');
    expect(await balanceOf(paidAccount(A))).toBe(60);
  });

  it.each([0, -1, 1.5, Number.NaN, Number.MAX_SAFE_INTEGER + 1])(
    'posts only whole micro-dollars above 0, and rejects %d',
    async (amount) => {
      expect(await code(topUp(A, amount))).toBe('RangeError');
      expect(await transfers()).toEqual([]);
    },
  );

  it('rejects balances beyond the safe integer range', async () => {
    await topUp(A, Number.MAX_SAFE_INTEGER);
    expect(await code(topUp(A, 1))).toBe('account_balance_invalid');
    expect(await code(topUp(B, 1))).toBe('account_balance_invalid');
    await grant(A, 1);
    expect(await code(walletOf(db, A))).toBe('account_balance_invalid');
  });

  it('rejects any change of posted rows', async () => {
    await topUp(A, 5);
    for (const change of [
      sql`update transfers set amount_uusd = 6`,
      sql`delete from transfers`,
      sql`update ledger_groups set actor = 'x'`,
      sql`delete from ledger_groups`,
      ...(onPostgres() ? [sql`truncate ledger_groups, transfers`] : []),
    ]) {
      await expect(change.execute(db)).rejects.toThrow('only grows');
    }
    expect(await transfers()).toHaveLength(1);
  });

  it('requires a transaction', async () => {
    const posting = postGroup(db, [leg('external:topup', paidAccount(A), 5)], testCause());
    await expect(posting).rejects.toThrow('inside a transaction');
  });
});

describe('holds', () => {
  beforeEach(async () => {
    await grant(A, 30);
    await topUp(A, 100);
  });

  it('holds granted credit first, and keeps the remaining credit available', async () => {
    await hold(A, 50);
    const wallet = await walletOf(db, A);
    expect(wallet).toEqual({
      accountId: A,
      paid: 100,
      granted: 30,
      held: 50,
      heldOfGranted: 30,
      available: 80,
    });
    expect(spendLegs(wallet, 80, 'clearing:usage')).toEqual([
      leg(paidAccount(A), 'clearing:usage', 80),
    ]);
    expect(() => spendLegs(wallet, 81, 'clearing:usage')).toThrow('does not cover');
    expect(spendLegs(wallet, 0, 'clearing:usage')).toEqual([]);
    expect(await code(hold(A, 81))).toBe('insufficient_balance');
    expect(await code(hold(B, 1))).toBe('insufficient_balance');
  });

  it.each([
    [50, { paid: 80, granted: 0 }],
    [20, { paid: 100, granted: 10 }],
    [0, { paid: 100, granted: 30 }],
  ])('posts %d of a hold and releases the remaining amount', async (posted, left) => {
    const id = await hold(A, 50);
    await inTx((tx) => settleHold(tx, id, posted, testCause()));
    expect(await walletOf(db, A)).toMatchObject({ ...left, held: 0 });
    expect(await balanceOf('clearing:usage')).toBe(posted);
    expect(await openHolds(db)).toEqual(new Map());
  });

  it('resolves a hold once', async () => {
    const [settled, voided] = [await hold(A, 50), await hold(A, 10)];
    const settle = (id: string, amount: number) =>
      inTx((tx) => settleHold(tx, id, amount, testCause()));
    const free = (id: string) => inTx((tx) => voidHold(tx, id, testCause()));
    await settle(settled, 40);
    await free(voided);
    await free(voided);
    await free(settled);
    await expect(settle(settled, 1)).rejects.toThrow('already resolved');
    await expect(settle(voided, 0)).rejects.toThrow('already resolved');
    await expect(settle('999999', 0)).rejects.toThrow('no hold');
    expect(await walletOf(db, A)).toMatchObject({ paid: 90, granted: 0, held: 0 });
    expect(await balanceOf('clearing:usage')).toBe(40);
  });

  it('rejects posting more than the amount of a hold', async () => {
    const id = await hold(A, 50);
    const work = inTx((tx) => settleHold(tx, id, 51, testCause()));
    await expect(work).rejects.toThrow('exceeds the hold by 1 micro-dollars');
    expect(await openHolds(db)).toEqual(new Map([[id, 50]]));
  });

  it('resolves a hold once if several transactions resolve it concurrently, and holds no money twice', async () => {
    const id = await hold(A, 50);
    const ends = Array.from({ length: 10 }, (_, index) =>
      code(
        inTx((tx) =>
          index % 2 === 0 ? voidHold(tx, id, testCause()) : settleHold(tx, id, 50, testCause()),
        ),
      ),
    );
    await Promise.all(ends);
    const resolving = (await transfers()).filter(({ pending_seq }) => pending_seq !== null);
    expect(new Set(resolving.map(({ pending_seq }) => pending_seq)).size).toBe(resolving.length);
    const { available: before } = await walletOf(db, A);
    const held = await Promise.all(Array.from({ length: 20 }, () => code(hold(A, 20))));
    expect(held.filter((answer) => answer === 'done')).toHaveLength(Math.floor(before / 20));
    expect(new Set(held)).toEqual(new Set(['done', 'insufficient_balance']));
  });
});
