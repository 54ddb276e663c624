import { describe, expect, it } from 'vitest';
import { createSeededRandom } from '../../../../test/fakes/seeded-random.ts';
import { addTime, NO_COST } from './cost.ts';
import { type Burning, runsOutAt, spendsOutAt } from './runway.ts';

const HOUR_MS = 3_600_000;
const START_MS = 1_800_000_000_000;
const pod = (change: Partial<Burning> = {}): Burning => ({
  closed: NO_COST,
  rate: { priceUusdPerGpuHour: 2_000_000, gpus: 2 },
  sinceMs: START_MS,
  chargedUusd: 0,
  changedMs: 0,
  ...change,
});

describe('the runway', () => {
  it('is the balance over the burn', () => {
    expect(runsOutAt(10_000_000, [pod()])).toBe(START_MS + 2.5 * HOUR_MS);
    expect(runsOutAt(10_000_000, [pod(), pod()])).toBe(START_MS + 1.25 * HOUR_MS);
  });

  it('is never without a burn, and where it lies beyond all times', () => {
    expect(runsOutAt(10_000_000, [])).toBeNull();
    const rate = { priceUusdPerGpuHour: 0, gpus: 8 };
    expect(runsOutAt(10_000_000, [pod({ rate })])).toBeNull();
    expect(runsOutAt(Number.MAX_SAFE_INTEGER, [pod()])).toBeNull();
  });

  it('stays where it is when a tick charges what was used', () => {
    const before = runsOutAt(10_000_000, [pod(), pod({ sinceMs: START_MS + 7 })]);
    const charged = [pod({ chargedUusd: 66 }), pod({ sinceMs: START_MS + 7, chargedUusd: 1_000 })];
    expect(runsOutAt(10_000_000 - 1_066, charged)).toBe(before);
  });

  it('is when the last pod began where there was nothing left', () => {
    const later = pod({ sinceMs: START_MS + 60_000 });
    expect(runsOutAt(0, [pod(), later])).toBe(START_MS + 60_000);
  });

  it('is the last instant at which what was used is covered', () => {
    const random = createSeededRandom(11);
    for (let round = 0; round < 300; round += 1) {
      const pods = Array.from({ length: 1 + random.int(4) }, () =>
        pod({
          rate: { priceUusdPerGpuHour: 1 + random.int(5_000_000), gpus: 1 + random.int(8) },
          closed: { uusd: random.int(1_000), rest: random.int(HOUR_MS) },
          sinceMs: START_MS + random.int(10_000),
        }),
      );
      const funds = 100_000 + random.int(50_000_000);
      const atMs = runsOutAt(funds, pods) ?? 0;
      const used = (untilMs: number) =>
        pods.reduce(
          (sum, { closed, rate, sinceMs }) => sum + addTime(closed, rate, untilMs - sinceMs).uusd,
          0,
        );
      expect(used(atMs)).toBeLessThanOrEqual(funds);
      // All together they would pass it at the next instant; each alone is rounded down.
      expect(used(atMs + HOUR_MS)).toBeGreaterThan(funds - pods.length);
    }
  });
});

describe('a cap of one pod', () => {
  it('is reached when it has cost so much', () => {
    expect(spendsOutAt(pod(), 4_000_000)).toBe(START_MS + HOUR_MS);
    expect(spendsOutAt(pod({ closed: { uusd: 3_000_000, rest: 0 } }), 4_000_000)).toBe(
      START_MS + HOUR_MS / 4,
    );
    expect(spendsOutAt(pod({ closed: { uusd: 5_000_000, rest: 0 } }), 4_000_000)).toBe(START_MS);
  });
});
