/** Tests whole simulations of a small market: equal options give equal runs. */
import { expect, it } from 'vitest';
import { simulateDay } from '../../test/fakes/scenes/small-simulation.ts';

it('repeats a run with the same seed, also in memory, and differs with another', async () => {
  const first = await simulateDay(7);
  expect(first.violation).toBeNull();
  expect(first.figures.rented).toBeGreaterThan(5);
  expect(first.days[0]?.checks).toBeGreaterThanOrEqual(3);
  expect(first.days[0]?.postings).toBeGreaterThan(0);
  expect(first.lines.some((line) => line.includes('"fault-'))).toBe(true);
  const again = await simulateDay(7, { database: ':memory:' });
  expect(again.lines).toEqual(first.lines);
  expect(again.hash).toBe(first.hash);
  expect((await simulateDay(8)).hash).not.toBe(first.hash);
});
