import { expect, it } from 'vitest';
import { createLogRing } from './log-ring.ts';

const entry = (n: number) => ({ id: `c.${n}.0`, text: 'x'.repeat(10) });

it('holds the newest entries and finds lines by id', () => {
  const ring = createLogRing(30);
  ring.startAfter('c.0.0');
  expect([ring.next(), ring.after('c.0.0'), ring.lastLineBefore(0)]).toEqual([0, 0, 'c.0.0']);
  for (let n = 1; n <= 5; n += 1) ring.push(entry(n));
  expect([ring.read(1, 100), ring.after('c.1.0'), ring.after('c.0.0')]).toEqual([null, null, null]);
  // The ring still finds the last dropped line.
  expect(ring.after('c.2.0')).toBe(2);
  expect(ring.read(ring.after('c.3.0') ?? 0, 100)).toEqual([entry(4), entry(5)]);
  expect(ring.read(2, 11)).toEqual([entry(3), entry(4)]);
  expect([ring.read(5, 100), ring.lastLineBefore(5)]).toEqual([[], 'c.5.0']);
});

it('holds an entry that is larger than the capacity until the next entry is added', () => {
  const ring = createLogRing(5);
  ring.push(entry(1));
  expect(ring.read(0, 100)).toEqual([entry(1)]);
  ring.push(entry(2));
  expect([ring.read(0, 100), ring.read(1, 100)]).toEqual([null, [entry(2)]]);
});

it('assigns consecutive numbers to thousands of entries', () => {
  const ring = createLogRing(1_000);
  for (let n = 0; n < 10_000; n += 1)
    ring.push(n % 2 === 0 ? entry(n) : { id: null, text: 'note' });
  expect(ring.next()).toBe(10_000);
  expect(ring.after('c.9998.0')).toBe(9_999);
  expect(ring.lastLineBefore(9_999)).toBe('c.9998.0');
});
