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
  it('is the balance divided by the hourly cost', () => {
    expect(runsOutAt(10_000_000, [pod()])).toBe(START_MS + 2.5 * HOUR_MS);
    expect(runsOutAt(10_000_000, [pod(), pod()])).toBe(START_MS + 1.25 * HOUR_MS);
  });

  it('is null without cost and beyond the last representable time', () => {
    expect(runsOutAt(10_000_000, [])).toBeNull();
    const rate = { priceUusdPerGpuHour: 0, gpus: 8 };
    expect(runsOutAt(10_000_000, [pod({ rate })])).toBeNull();
    expect(runsOutAt(Number.MAX_SAFE_INTEGER, [pod()])).toBeNull();
  });

  it('does not change when a settlement charges use', () => {
    const before = runsOutAt(10_000_000, [pod(), pod({ sinceMs: START_MS + 7 })]);
    const charged = [pod({ chargedUusd: 66 }), pod({ sinceMs: START_MS + 7, chargedUusd: 1_000 })];
    expect(runsOutAt(10_000_000 - 1_066, charged)).toBe(before);
  });

  it('is the start of the last pod if no money is left', () => {
    const later = pod({ sinceMs: START_MS + 60_000 });
    expect(runsOutAt(0, [pod(), later])).toBe(START_MS + 60_000);
  });

  it('is the last instant at which all use is covered', () => {
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
      // An hour later the use exceeds the funds. Each pod's cost is rounded down, so the sum may be smaller by up to 1
      // per pod.
      expect(used(atMs + HOUR_MS)).toBeGreaterThan(funds - pods.length);
    }
  });
});

describe('the spend limit of one pod', () => {
  it('is reached when the cost of the pod equals the limit', () => {
    expect(spendsOutAt(pod(), 4_000_000)).toBe(START_MS + HOUR_MS);
    expect(spendsOutAt(pod({ closed: { uusd: 3_000_000, rest: 0 } }), 4_000_000)).toBe(
      START_MS + HOUR_MS / 4,
    );
    expect(spendsOutAt(pod({ closed: { uusd: 5_000_000, rest: 0 } }), 4_000_000)).toBe(START_MS);
  });
});
