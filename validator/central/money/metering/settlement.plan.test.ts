/** Tests which accounts pay a settlement, to the micro-dollar. */
import { expect, it } from 'vitest';
import type { Wallet } from '../ledger/wallet.service.ts';
import { dayShares, dueCharge } from './charge.plan.ts';
import { NO_HOLD_PAYMENT, planSettlement } from './settlement.plan.ts';
import type { Meter } from './usage.store.ts';

const START_MS = 1_800_000_000_000;
const MINUTE_MS = 60_000;

/** A pod that costs 100 micro-dollars per minute and was not charged yet. */
const METER: Meter = {
  pod_id: 'p',
  account_id: 'a',
  executor_id: 'e',
  provider_id: 'h',
  hold_id: null,
  price_uusd_per_gpu_hour: 6_000,
  gpu_count: 1,
  seq: 0,
  state: 'running',
  is_billable: 1,
  since_ms: START_MS,
  settled_to_ms: START_MS,
  ended_at: null,
  closed_uusd: 0,
  closed_rest: 0,
  charged_uusd: 0,
  provider_uusd: 0,
  granted_uusd: 0,
  absorbed_uusd: 0,
  refunded_uusd: 0,
  tick_seq: 0,
  changed_ms: 0,
};

const wallet = (granted: number, paid: number, held = 0): Wallet => ({
  accountId: 'a',
  paid,
  granted,
  held,
  heldOfGranted: 0,
  available: paid + granted - held,
});

/** Amounts debited from each ledger account. */
function payers(legs: ReturnType<typeof planSettlement>['legs']): Record<string, number> {
  const paying = legs.filter(({ credit }) => credit === 'clearing:usage');
  return Object.fromEntries(paying.map(({ debit, amountUusd }) => [debit, amountUusd]));
}

it.each([
  ['granted credit first', wallet(60, 60), { 'granted:a': 60, 'user:a': 40 }],
  ['exactly the available credit', wallet(60, 40), { 'granted:a': 60, 'user:a': 40 }],
  [
    'available credit that is one micro-dollar too low',
    wallet(60, 39),
    absorbing({ 'granted:a': 60, 'user:a': 39 }, 1),
  ],
  ['only paid credit', wallet(0, 100), { 'user:a': 100 }],
  ['no credit', wallet(0, 0), absorbing({}, 100)],
  [
    'credit held for another purpose is not spent',
    wallet(0, 100, 30),
    absorbing({ 'user:a': 70 }, 30),
  ],
])('charges 100 micro-dollars: %s', (_, before, expected) => {
  const { legs, row, wallet: after } = planSettlement(METER, START_MS + MINUTE_MS, before);
  expect(payers(legs)).toEqual(expected);
  expect(after.available).toBe(Math.max(0, before.available - 100));
  expect(row).toMatchObject({ total_uusd: 100, days: [{ charge_uusd: 100, net_uusd: 95 }] });
  expect(row.absorbed_uusd).toBe(Math.max(0, 100 - before.available));
  const earned = legs.filter(({ debit }) => debit === 'clearing:usage');
  expect(earned.map(({ amountUusd }) => amountUusd)).toEqual([95, 5]);
});

it.each([
  [99, { 'user:a': 1 }],
  [100, {}],
])('charges only the remainder of 100 micro-dollars if a hold has paid %d', (uusd, expected) => {
  const held = { ...NO_HOLD_PAYMENT, uusd, granted: 10 };
  const { legs, row } = planSettlement(METER, START_MS + MINUTE_MS, wallet(0, 1), held);
  expect(payers(legs)).toEqual(expected);
  expect(row).toMatchObject({ granted_uusd: 10, absorbed_uusd: 0 });
});

function absorbing(others: Record<string, number>, uusd: number): Record<string, number> {
  return { ...others, 'platform:absorbed': uusd };
}

it('charges the price of a minute for shorter use, and sets it off against later use', () => {
  const first = planSettlement(METER, START_MS + 1, wallet(0, 500)).row;
  expect(first).toMatchObject({ total_uusd: 100, days: [{ charge_uusd: 100, net_uusd: 95 }] });
  const charged = { ...METER, charged_uusd: 100, provider_uusd: 95 };
  expect(dueCharge(charged, START_MS + MINUTE_MS)).toBeNull();
  expect(dueCharge(charged, START_MS + 2 * MINUTE_MS)).toBe(100);
  expect(dueCharge(METER, START_MS)).toBeNull();
});

it('divides a charge among the days to which the charged time belongs', () => {
  const midnightMs = Math.ceil(START_MS / 86_400_000) * 86_400_000;
  const meter = { ...METER, since_ms: midnightMs - 90_000, settled_to_ms: midnightMs - 90_000 };
  const untilMs = midnightMs + 86_400_000 + 60_000;
  const shares = dayShares(meter, untilMs);
  expect(shares.map(({ from_ms, to_ms }) => [from_ms - midnightMs, to_ms - midnightMs])).toEqual([
    [-90_000, 0],
    [0, 86_400_000],
    [86_400_000, 86_460_000],
  ]);
  expect(shares.map(({ charge_uusd }) => charge_uusd)).toEqual([150, 144_000, 100]);
  expect(shares.reduce((sum, { net_uusd }) => sum + net_uusd, 0)).toBe((144_250 * 95 - 50) / 100);
});
