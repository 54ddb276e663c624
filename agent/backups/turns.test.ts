import { expect, it } from 'vitest';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { createTurns } from './turns.ts';

const HOUR_MS = 3_600_000;

/** A queue whose operations end when the test ends them. */
function scene(limit = 2) {
  const clock = createManualClock();
  const turns = createTurns(limit, clock);
  const ends = new Map<string, () => void>();
  const begun: string[] = [];
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  return {
    turns,
    clock,
    begun,
    settle,
    add(id: string, renter: string, isPresent = true, signal = new AbortController().signal) {
      const work = () => {
        begun.push(id);
        return new Promise<void>((resolve) => ends.set(id, resolve));
      };
      return turns.run({ id, renter, isPresent }, work, signal);
    },
    async end(id: string): Promise<void> {
      ends.get(id)?.();
      await settle();
    },
  };
}

it('runs one operation of a renter at a time, however many wait', async () => {
  const { add, begun, end, settle, turns } = scene();
  for (const id of ['a1', 'a2', 'a3']) void add(id, 'a');
  void add('b1', 'b');
  await settle();
  expect(begun).toEqual(['a1', 'b1']);
  expect(turns.reasonOf('a2')).toContain('Another backup or restore of this account runs');
  void add('c1', 'c');
  expect(turns.reasonOf('c1')).toContain('at most 2 at a time');
  expect(turns.reasonOf('a1'), 'it runs').toBeNull();
  await end('b1');
  await end('a1');
  expect(begun).toEqual(['a1', 'b1', 'c1', 'a2']);
});

it('alternates between renters, whatever the order of arrival', async () => {
  const { add, begun, end, settle } = scene(1);
  for (const id of ['a1', 'a2', 'a3']) void add(id, 'a');
  for (const id of ['b1', 'b2']) void add(id, 'b');
  await settle();
  for (const id of ['a1', 'b1', 'a2', 'b2', 'a3']) await end(id);
  expect(begun).toEqual(['a1', 'b1', 'a2', 'b2', 'a3']);
});

it('serves renters with a pod first, and reserves a place for them beside endless work of others', async () => {
  const { add, begun, end, settle, turns, clock } = scene();
  void add('gone1', 'x', false);
  void add('gone2', 'y', false);
  await settle();
  expect(begun).toEqual(['gone1']);
  expect(turns.reasonOf('gone2')).toContain('keeps a place free for accounts that have a pod');
  void add('here1', 'a');
  void add('here2', 'b');
  await settle();
  expect(begun).toEqual(['gone1', 'here1']);
  await end('gone1');
  expect(begun).toEqual(['gone1', 'here1', 'here2']);
  void add('here3', 'c');
  await clock.advance(3 * HOUR_MS);
  await end('here1');
  expect(begun.at(-1), 'a renter without a pod waits for two hours at most').toBe('gone2');
});

it('forgets an operation that is cancelled while it waits', async () => {
  const { add, begun, end, settle, turns } = scene(1);
  const cancelled = new AbortController();
  void add('a1', 'a');
  const waits = add('b1', 'b', true, cancelled.signal);
  void add('c1', 'c');
  await settle();
  cancelled.abort(new Error('cancelled'));
  await expect(waits).rejects.toThrow('cancelled');
  expect(turns.reasonOf('b1')).toBeNull();
  await end('a1');
  expect(begun).toEqual(['a1', 'c1']);
});
