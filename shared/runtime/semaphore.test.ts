import { expect, it } from 'vitest';
import { createCounter, createSemaphore } from './semaphore.ts';

it('lets only so many in at a time, in order, and the next one in after a failure', async () => {
  const semaphore = createSemaphore(2);
  const order: number[] = [];
  let inside = 0;
  const work = (n: number) =>
    semaphore.run(async () => {
      inside += 1;
      expect(inside).toBeLessThanOrEqual(2);
      await new Promise((resolve) => setImmediate(resolve));
      inside -= 1;
      order.push(n);
      if (n % 2 === 0) throw new Error('even');
    });
  const outcomes = await Promise.allSettled([0, 1, 2, 3, 4].map(work));
  expect(order).toEqual([0, 1, 2, 3, 4]);
  expect(outcomes.filter(({ status }) => status === 'rejected')).toHaveLength(3);
});

it('lets those who wait leave without a place', async () => {
  const semaphore = createSemaphore(1);
  const first = Promise.withResolvers<void>();
  const held = semaphore.run(() => first.promise);
  const leaving = new AbortController();
  const gone = semaphore.run(async () => 'never', leaving.signal);
  const next = semaphore.run(async () => 'next');
  leaving.abort(new Error('left'));
  await expect(gone).rejects.toThrow('left');
  first.resolve();
  await held;
  expect(await next).toBe('next');
});

it('holds to both bounds, and gives room back once only', () => {
  const counter = createCounter(2, 3);
  expect([counter.take('a'), counter.take('a'), counter.take('a')]).toEqual([true, true, false]);
  expect([counter.take('b'), counter.take('c')]).toEqual([true, false]);
  counter.release('c');
  expect(counter.take('c')).toBe(false);
  counter.release('a');
  expect([counter.take('c'), counter.take('a')]).toEqual([true, false]);
});
