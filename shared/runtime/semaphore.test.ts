import { expect, it } from 'vitest';
import { createPerOwnerLimit, createSemaphore } from './semaphore.ts';

it('runs at most `limit` pieces of work at a time, in order, and continues after a failure', async () => {
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

it('rejects a waiting caller whose signal aborts', async () => {
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

it('enforces the limits per owner and in total, and ignores a second release', () => {
  const limit = createPerOwnerLimit(2, 3);
  expect([limit.tryAcquire('a'), limit.tryAcquire('a'), limit.tryAcquire('a')]).toEqual([
    true,
    true,
    false,
  ]);
  expect([limit.tryAcquire('b'), limit.tryAcquire('c')]).toEqual([true, false]);
  limit.release('c');
  expect(limit.tryAcquire('c')).toBe(false);
  limit.release('a');
  expect([limit.tryAcquire('c'), limit.tryAcquire('a')]).toEqual([true, false]);
});

it('leaves assured slots to each owner above the total', () => {
  const limit = createPerOwnerLimit(2, 2, 1);
  const taken = ['a', 'a', 'b', 'b', 'c'].map((owner) => limit.tryAcquire(owner));
  expect(taken).toEqual([true, true, true, false, true]);
});
