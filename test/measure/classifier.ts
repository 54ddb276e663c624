/**
 * Logistic regression and gradient-boosted trees for two classes, and cross-validation. Small and exact implementations,
 * because the packages for Node either are not maintained or need native code; classifier.test.ts compares them with
 * problems whose best result can be computed.
 */
import type { Random } from '#shared/runtime/random.ts';

/** One row of numbers for each case; all have the same length. */
export type Rows = readonly Float64Array[];
export type Labels = readonly (0 | 1)[];
/** Returns a value that is larger for cases that are more probably of class 1. */
export type Model = (row: Float64Array) => number;
export type Train = (rows: Rows, labels: Labels) => Model;

const sigmoid = (value: number): number => 1 / (1 + Math.exp(-value));

const STEPS = 400;
const RATE = 0.5;
/** Weight of the squared coefficients in the loss. */
const RIDGE = 0.01;

/** Trains coefficients to standardized features by gradient descent. */
export const trainLogistic: Train = (rows, labels) => {
  const width = rows[0]?.length ?? 0;
  const scales = Array.from({ length: width }, (_, at) => scaleOf(rows.map((row) => row[at] ?? 0)));
  const scaled = rows.map((row) => row.map((value, at) => standard(value, scales[at])));
  const weights = new Float64Array(width);
  let bias = 0;
  for (let step = 0; step < STEPS; step += 1) {
    const slope = weights.map((weight) => weight * RIDGE);
    let biasSlope = 0;
    for (const [index, row] of scaled.entries()) {
      const error = (sigmoid(bias + dot(weights, row)) - (labels[index] ?? 0)) / rows.length;
      biasSlope += error;
      for (let at = 0; at < width; at += 1) slope[at] = (slope[at] ?? 0) + error * (row[at] ?? 0);
    }
    bias -= RATE * biasSlope;
    for (let at = 0; at < width; at += 1)
      weights[at] = (weights[at] ?? 0) - RATE * (slope[at] ?? 0);
  }
  return (row) =>
    bias +
    dot(
      weights,
      row.map((value, at) => standard(value, scales[at])),
    );
};

type Scale = { mean: number; deviation: number };

function scaleOf(values: readonly number[]): Scale {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length;
  return { mean, deviation: Math.sqrt(variance) };
}

/** Features that are constant in training have no effect. Values beyond five deviations count as five. */
function standard(value: number, { mean, deviation }: Scale = { mean: 0, deviation: 0 }): number {
  return deviation === 0 ? 0 : Math.max(-5, Math.min(5, (value - mean) / deviation));
}

function dot(left: Float64Array, right: Float64Array): number {
  let sum = 0;
  for (let at = 0; at < left.length; at += 1) sum += (left[at] ?? 0) * (right[at] ?? 0);
  return sum;
}

const TREES = 100;
const DEPTH = 3;
const SHRINK = 0.1;
const MIN_LEAF = 5;
const LEAF_RIDGE = 1;
/** Thresholds that are tried for each feature. */
const THRESHOLDS = 32;

type Tree = number | { feature: number; above: number; low: Tree; high: Tree };

/** Trains trees of depth 3 to the gradient of the logistic loss. `gains` receives the gain of each feature. */
export const trainTrees =
  (gains?: Float64Array): Train =>
  (rows, labels) => {
    const width = rows[0]?.length ?? 0;
    const thresholds = Array.from({ length: width }, (_, at) =>
      quantiles(rows.map((row) => row[at] ?? 0)),
    );
    const scores = new Float64Array(rows.length);
    const trees: Tree[] = [];
    for (let round = 0; round < TREES; round += 1) {
      const slopes = scores.map((score, at) => (labels[at] ?? 0) - sigmoid(score));
      const curves = scores.map((score) => sigmoid(score) * (1 - sigmoid(score)));
      const training = { rows, slopes, curves, thresholds, gains };
      const tree = grow(training, [...rows.keys()], DEPTH);
      trees.push(tree);
      for (const [at, row] of rows.entries()) scores[at] = (scores[at] ?? 0) + leafOf(tree, row);
    }
    return (row) => trees.reduce<number>((sum, tree) => sum + leafOf(tree, row), 0);
  };

type Training = {
  rows: Rows;
  slopes: Float64Array;
  curves: Float64Array;
  thresholds: readonly (readonly number[])[];
  gains: Float64Array | undefined;
};

function quantiles(values: readonly number[]): number[] {
  const distinct = [...new Set(values)].toSorted((a, b) => a - b);
  const middles = distinct.slice(1).map((value, at) => (value + (distinct[at] ?? value)) / 2);
  if (middles.length <= THRESHOLDS) return middles;
  const step = middles.length / THRESHOLDS;
  return Array.from({ length: THRESHOLDS }, (_, at) => middles[Math.floor((at + 0.5) * step)] ?? 0);
}

function grow(training: Training, cases: readonly number[], depth: number): Tree {
  const { slopes, curves, rows, thresholds, gains } = training;
  const total = sumOf(cases, slopes, curves);
  const split = depth === 0 ? null : bestSplit(training, cases, total);
  if (split === null) return SHRINK * (total.slope / (total.curve + LEAF_RIDGE));
  const { feature, at, gain } = split;
  const above = thresholds[feature]?.[at] ?? 0;
  if (gains !== undefined) gains[feature] = (gains[feature] ?? 0) + gain;
  const isLow = (index: number) => (rows[index]?.[feature] ?? 0) <= above;
  return {
    feature,
    above,
    low: grow(training, cases.filter(isLow), depth - 1),
    high: grow(
      training,
      cases.filter((index) => !isLow(index)),
      depth - 1,
    ),
  };
}

type Sum = { slope: number; curve: number; count: number };

function sumOf(cases: readonly number[], slopes: Float64Array, curves: Float64Array): Sum {
  const sum = { slope: 0, curve: 0, count: cases.length };
  for (const index of cases) {
    sum.slope += slopes[index] ?? 0;
    sum.curve += curves[index] ?? 0;
  }
  return sum;
}

const worth = ({ slope, curve }: Sum): number => slope ** 2 / (curve + LEAF_RIDGE);

function bestSplit(
  { rows, slopes, curves, thresholds }: Training,
  cases: readonly number[],
  total: Sum,
) {
  let best: { feature: number; at: number; gain: number } | null = null;
  for (const [feature, limits] of thresholds.entries()) {
    if (limits.length === 0) continue;
    const bins = Array.from({ length: limits.length + 1 }, () => ({
      slope: 0,
      curve: 0,
      count: 0,
    }));
    for (const index of cases) {
      const bin = bins[binOf(limits, rows[index]?.[feature] ?? 0)];
      if (bin === undefined) continue;
      bin.slope += slopes[index] ?? 0;
      bin.curve += curves[index] ?? 0;
      bin.count += 1;
    }
    const low = { slope: 0, curve: 0, count: 0 };
    for (const at of limits.keys()) {
      const bin = bins[at];
      if (bin === undefined) continue;
      low.slope += bin.slope;
      low.curve += bin.curve;
      low.count += bin.count;
      const high = {
        slope: total.slope - low.slope,
        curve: total.curve - low.curve,
        count: total.count - low.count,
      };
      if (low.count < MIN_LEAF || high.count < MIN_LEAF) continue;
      const gain = worth(low) + worth(high) - worth(total);
      if (gain > (best?.gain ?? 1e-9)) best = { feature, at, gain };
    }
  }
  return best;
}

/** Number of limits below the value. */
function binOf(limits: readonly number[], value: number): number {
  let low = 0;
  let high = limits.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((limits[middle] ?? 0) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function leafOf(tree: Tree, row: Float64Array): number {
  if (typeof tree === 'number') return tree;
  return leafOf((row[tree.feature] ?? 0) <= tree.above ? tree.low : tree.high, row);
}

/**
 * Returns a score for each case from a model that was trained without its fold. Each fold has as many cases of both classes
 * as the others. `prepare` turns the cases into rows and may only learn from the cases of the training.
 */
export function crossValidate<T>(
  random: Random,
  cases: readonly { value: T; label: 0 | 1 }[],
  {
    folds,
    prepare,
    train,
  }: { folds: number; prepare(training: readonly T[]): (value: T) => Float64Array; train: Train },
): number[] {
  const foldOf = stratified(
    random,
    cases.map(({ label }) => label),
    folds,
  );
  const scores = new Array<number>(cases.length).fill(0);
  for (let fold = 0; fold < folds; fold += 1) {
    const training = cases.filter((_, at) => foldOf[at] !== fold);
    const rowOf = prepare(training.map(({ value }) => value));
    const model = train(
      training.map(({ value }) => rowOf(value)),
      training.map(({ label }) => label),
    );
    for (const [at, { value }] of cases.entries()) {
      if (foldOf[at] === fold) scores[at] = model(rowOf(value));
    }
  }
  return scores;
}

function stratified(random: Random, labels: Labels, folds: number): number[] {
  const foldOf = new Array<number>(labels.length).fill(0);
  for (const label of [0, 1] as const) {
    const indexes = [...labels.keys()].filter((at) => labels[at] === label);
    const order = indexes.map((index) => ({ index, key: random.int(2 ** 30) }));
    order.sort((a, b) => a.key - b.key);
    for (const [at, { index }] of order.entries()) foldOf[index] = at % folds;
  }
  return foldOf;
}
