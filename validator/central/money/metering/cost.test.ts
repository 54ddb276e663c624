import { describe, expect, it } from 'vitest';
import { createSeededRandom } from '../../../../test/fakes/seeded-random.ts';
import { providerShare } from '../ledger/shares.ts';
import { addTime, chargeBetween, costOfSegments, NO_COST, partsOf, type Rate } from './cost.ts';

const HOUR_MS = 3_600_000;
const rate = (usdPerHour: number, gpus: number): Rate => ({
  priceUusdPerGpuHour: usdPerHour * 1_000_000,
  gpus,
});

/** Sums all postings while `ms` milliseconds are metered in steps. */
function meter(at: Rate, ms: number, stepMs: number) {
  const posted = { charged: 0, provider: 0, fee: 0 };
  for (let nowMs = stepMs; ; nowMs += stepMs) {
    const total = addTime(NO_COST, at, Math.min(nowMs, ms)).uusd;
    const before = { chargedUusd: posted.charged, providerUusd: posted.provider };
    const charge = chargeBetween(before, total);
    posted.charged += charge.chargeUusd;
    posted.provider += charge.providerUusd;
    posted.fee += charge.feeUusd;
    if (nowMs >= ms) return posted;
  }
}

describe('the meter', () => {
  it('charges the same for every settlement interval (I6)', () => {
    const odd: Rate = { priceUusdPerGpuHour: 1_234_567, gpus: 3 };
    const ms = 3 * HOUR_MS + 1_234_567;
    const slow = meter(odd, ms, HOUR_MS);
    expect(slow.charged).toBe(slow.provider + slow.fee);
    for (const stepMs of [1_000, 10_000, 60_000, 7_777])
      expect(meter(odd, ms, stepMs)).toEqual(slow);
  });

  it('is exact beyond the precision of a double: 8 GPUs at $30 for 11 hours', () => {
    const dear = rate(30, 8);
    const ms = 11 * HOUR_MS + 1;
    expect(30_000_000 * 8 * ms).toBeGreaterThan(Number.MAX_SAFE_INTEGER);
    expect(partsOf(addTime(NO_COST, dear, ms))).toBe(30_000_000n * 8n * BigInt(ms));
    expect(addTime(NO_COST, dear, ms)).toEqual({ uusd: 2_640_000_066, rest: 2_400_000 });
  });

  it('keeps fractions across segments', () => {
    const odd: Rate = { priceUusdPerGpuHour: 1_000_001, gpus: 1 };
    let pieces = NO_COST;
    for (let index = 0; index < 3_600; index += 1) pieces = addTime(pieces, odd, 1_000);
    expect(pieces).toEqual({ uusd: 1_000_001, rest: 0 });
  });

  it('charges nothing when the clock goes backwards (I18)', () => {
    expect(addTime({ uusd: 5, rest: 7 }, rate(1, 1), -60_000)).toEqual({ uusd: 5, rest: 7 });
    expect(chargeBetween({ chargedUusd: 100, providerUusd: 95 }, 40)).toEqual({
      chargeUusd: 0,
      providerUusd: 0,
      feeUusd: 0,
    });
  });

  it('credits the provider with 95 % of the total, rounded once', () => {
    expect([0, 1, 19, 20, 21, 100, 10_001].map(providerShare)).toEqual([
      0, 0, 18, 19, 19, 95, 9500,
    ]);
    const random = createSeededRandom(5);
    let before = { chargedUusd: 0, providerUusd: 0 };
    for (let step = 0; step < 500; step += 1) {
      const total = before.chargedUusd + random.int(40);
      const { providerUusd, feeUusd } = chargeBetween(before, total);
      expect(Math.min(providerUusd, feeUusd)).toBeGreaterThanOrEqual(0);
      before = { chargedUusd: total, providerUusd: before.providerUusd + providerUusd };
    }
    expect(before.providerUusd).toBe(providerShare(before.chargedUusd));
  });

  it('recomputes the cost of billable segments from scratch', () => {
    const at = rate(3.6, 1);
    const piece = (fromMs: number, toMs: number | null, isBillable: boolean) => ({
      fromMs,
      toMs,
      isBillable,
      rate: at,
    });
    const life = [piece(0, 1_500, true), piece(1_500, 9_000, false), piece(9_000, null, true)];
    expect(costOfSegments(life, 10_000).uusd).toBe(2_500);
    expect(costOfSegments(life, 9_000).uusd).toBe(1_500);
    expect(costOfSegments(life, 1_000).uusd).toBe(1_000);
  });
});
