/** The classifiers on problems whose best result can be computed. */
import { expect, it } from 'vitest';
import { createSeededRandom } from '../fakes/seeded-random.ts';
import { aucOf } from './auc.ts';
import { crossValidate, type Train, trainLogistic, trainTrees } from './classifier.ts';

const CASES = 400;
const FOLDS = 10;
const STEPS = 1_000_000;

/** Draws rows of two features; `rowFor` returns them for a class. */
function areaFor(train: Train, rowFor: (label: 0 | 1, normal: () => number) => number[]) {
  const random = createSeededRandom(7);
  const uniform = () => (random.int(STEPS) + 0.5) / STEPS;
  const normal = () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
  const cases = Array.from({ length: 2 * CASES }, (_, at) => {
    const label = (at % 2) as 0 | 1;
    return { label, value: Float64Array.from(rowFor(label, normal)) };
  });
  const scores = crossValidate(random, cases, { folds: FOLDS, train, prepare: () => (row) => row });
  return aucOf(
    scores,
    cases.map(({ label }) => label),
  );
}

const TRAINERS: [string, Train][] = [
  ['logistic regression', trainLogistic],
  ['boosted trees', trainTrees()],
];

it.each(TRAINERS)('%s finds two normal classes as well as possible', (_, train) => {
  // Classes with a distance of one deviation: the best area is the normal distribution at 1 / √2.
  const { area, low, high } = areaFor(train, (label, normal) => [normal() + label, normal()]);
  expect(area).toBeGreaterThan(0.76 - 0.05);
  expect(low).toBeLessThan(0.76);
  expect(high).toBeLessThan(0.85);
});

it.each(TRAINERS)('%s finds nothing where there is nothing', (_, train) => {
  const { low, high } = areaFor(train, (_label, normal) => [normal(), normal()]);
  expect(low).toBeLessThan(0.5);
  expect(high).toBeLessThan(0.6);
});

it('trees find what no sum of features shows', () => {
  const exclusive = (label: 0 | 1, normal: () => number) => {
    const first = normal();
    const second = Math.abs(normal());
    return [first, first > 0 === (label === 1) ? second : -second];
  };
  expect(areaFor(trainTrees(), exclusive).area).toBeGreaterThan(0.95);
  expect(areaFor(trainLogistic, exclusive).area).toBeLessThan(0.6);
});

it('computes areas and intervals', () => {
  expect(aucOf([1, 2, 3, 4], [0, 0, 1, 1])).toEqual({ area: 1, low: 1, high: 1 });
  expect(aucOf([1, 1, 1, 1], [0, 1, 0, 1]).area).toBe(0.5);
  // Scores 1, 3 against 0, 2: three of four pairs are in order; both variances of the placements are 1/8.
  const { area, low, high } = aucOf([1, 3, 0, 2], [1, 1, 0, 0]);
  expect(area).toBe(0.75);
  expect(high - low).toBeCloseTo(
    Math.min(1, 0.75 + 1.959964 * Math.sqrt(1 / 8)) -
      Math.max(0, 0.75 - 1.959964 * Math.sqrt(1 / 8)),
    5,
  );
});
