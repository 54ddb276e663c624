import { expect, it } from 'vitest';
import { betterOf, isDue, needsSecondSample, nextLine, unmeasuredLine } from './line.state.ts';
import type { LineSample } from './measure-line.ts';

const NOW_MS = 1_800_000_000_000;
const HOUR_MS = 3_600_000;

const sample = (downKbit: number, upKbit = downKbit): LineSample => ({
  status: 'measured',
  downKbit,
  upKbit,
  falseStream: null,
});
const FALSE: LineSample = { status: 'measured', downKbit: 9, upKbit: 9, falseStream: 'up' };
const REFUSED: LineSample = { status: 'refused', detail: '' };
const LOST: LineSample = { status: 'not_measured', detail: '' };

const after = (...samples: LineSample[]) =>
  samples.reduce((line, each, at) => nextLine(line, each, NOW_MS + at), unmeasuredLine('e'));

it('gives the earlier mean a weight of 0.7 after the first sample', () => {
  expect(after(sample(500_000))).toMatchObject({ samples: 1, down_kbit: 500_000 });
  const second = after(sample(500_000, 100_000), sample(100_000, 200_000));
  expect(second).toMatchObject({ samples: 2, down_kbit: 380_000, up_kbit: 130_000 });
  expect([second.last_down_kbit, second.last_up_kbit]).toEqual([100_000, 200_000]);
});

it('does not change the mean after failed measurements or altered data', () => {
  const known = after(sample(500_000));
  for (const odd of [LOST, REFUSED, FALSE]) {
    expect(nextLine(known, odd, NOW_MS + 1)).toMatchObject({ samples: 1, down_kbit: 500_000 });
  }
  expect(after(REFUSED, REFUSED).refusals).toBe(2);
  expect(after(REFUSED, LOST).refusals).toBe(1);
  expect(after(REFUSED, sample(1)).refusals).toBe(0);
  expect([after(FALSE).false_stream, after(FALSE, sample(1)).false_stream]).toEqual(['up', null]);
});

it('repeats a low first sample and uses the faster sample per direction', () => {
  const fresh = unmeasuredLine('e');
  expect(needsSecondSample(fresh, sample(500_000, 5_000), 100_000)).toBe(true);
  expect(needsSecondSample(fresh, sample(500_000), 100_000)).toBe(false);
  expect(needsSecondSample(after(sample(1)), sample(5_000), 100_000)).toBe(false);
  expect(needsSecondSample(fresh, LOST, 100_000)).toBe(false);
  expect(betterOf(sample(5, 9), sample(7, 3))).toEqual(sample(7, 9));
  expect(betterOf(sample(5), LOST)).toEqual(sample(5));
});

it('is due after the interval, or sooner after a failure', () => {
  const due = (line: ReturnType<typeof after>, passedMs: number) =>
    isDue(line, NOW_MS + passedMs, HOUR_MS);
  expect(due(unmeasuredLine('e'), 0)).toBe(true);
  expect([due(after(sample(1)), HOUR_MS - 1), due(after(sample(1)), HOUR_MS)]).toEqual([
    false,
    true,
  ]);
  for (const odd of [LOST, REFUSED, FALSE]) {
    expect([due(after(sample(1), odd), 60_000), due(after(sample(1), odd), 300_001)]).toEqual([
      false,
      true,
    ]);
  }
  // The clock was set back by days.
  expect(due(after(sample(1)), -48 * HOUR_MS)).toBe(true);
});
