import { expect, it } from 'vitest';
import { MINIMUM_UUSD, payable, payableBefore } from './payout.state.ts';

const DAY_MS = 86_400_000;
/** 2027-01-15T00:00:00Z */
const TODAY = 1_799_971_200_000;

it.each([
  [TODAY - 1, TODAY - 2 * DAY_MS],
  [TODAY, TODAY - DAY_MS],
  [TODAY + DAY_MS - 1, TODAY - DAY_MS],
])('at %d, pays out earnings before %d', (nowMs, untilMs) => {
  expect(payableBefore(nowMs)).toBe(untilMs);
});

it.each([
  [{ balance: 100, pending: 0, withheld: 0 }, 100],
  [{ balance: 100, pending: 60, withheld: 0 }, 40],
  [{ balance: 100, pending: 60, withheld: 40 }, 0],
  [{ balance: 100, pending: 60, withheld: 41 }, 0],
  // Refunds of the last days exceed their earnings.
  [{ balance: 100, pending: 0, withheld: -5 }, 100],
  [{ balance: -1, pending: 0, withheld: 0 }, 0],
])('computes from %j a payable amount of %d', (has, uusd) => {
  expect(payable(has)).toBe(uusd);
});

it('requires ten dollars, or one cent for a payout to the own credit', () => {
  const most = { hotkey: 10_000_000, crypto: 10_000_000, stripe_connect: 10_000_000 };
  expect(MINIMUM_UUSD).toEqual({ ...most, balance: 10_000 });
});
