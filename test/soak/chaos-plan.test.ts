import { expect, it } from 'vitest';
import { createSeededRandom } from '../fakes/seeded-random.ts';
import { planChaos } from './chaos-plan.ts';

const MINUTES_30_MS = 1_800_000;
const planOf = (seed: number, without: string[] = []) =>
  planChaos(createSeededRandom(seed), MINUTES_30_MS, without);
const kindsOf = (all: readonly { kind: string }[]) => [...new Set(all.map(({ kind }) => kind))];

it('repeats a plan for the same seed only', () => {
  expect(planOf(7)).toEqual(planOf(7));
  expect(planOf(7)).not.toEqual(planOf(8));
});

it('plans every kind of operation and fault in half an hour, except the kinds that are left out', () => {
  const { operations, faults } = planOf(1);
  expect(kindsOf(operations)).toHaveLength(7);
  expect(kindsOf(faults)).toHaveLength(9);
  const left = planOf(1, ['clock', 'postgres']);
  expect(left.operations).toEqual(operations);
  expect(left.faults).toEqual(faults.filter(({ kind }) => kind !== 'clock' && kind !== 'postgres'));
});
