import { expect, it } from 'vitest';
import { createEventClock } from '../time/event-clock.ts';
import { createFaultEndings } from './fault-endings.ts';

const MINUTE_MS = 60_000;

it('ends a fault after its time, or before it on request', async () => {
  const clock = createEventClock(0);
  const endings = createFaultEndings(clock);
  const { signal } = new AbortController();
  const ended: string[] = [];
  const wait = async (name: string, number: number) => {
    await endings.during(number, 60 * MINUTE_MS, signal);
    ended.push(`${name} after ${clock.steadyMs() / MINUTE_MS} min`);
  };
  const waits = [wait('first', 1), wait('second', 2)];
  await clock.runUntil(20 * MINUTE_MS);
  expect(endings.end(2)).toBe(true);
  await clock.runUntil(90 * MINUTE_MS);
  await Promise.all(waits);
  expect(ended).toEqual(['second after 20 min', 'first after 60 min']);
  expect([endings.end(1), endings.end(2)]).toEqual([false, false]);
  clock.close();
});

it('rejects when all faults stop, so that no repair follows', async () => {
  const clock = createEventClock(0);
  const endings = createFaultEndings(clock);
  const stopping = new AbortController();
  const waiting = endings.during(1, MINUTE_MS, stopping.signal);
  stopping.abort(new Error('stopped'));
  await expect(waiting).rejects.toThrow('stopped');
  await expect(endings.during(2, MINUTE_MS, stopping.signal)).rejects.toThrow('stopped');
  expect(endings.end(1)).toBe(false);
  clock.close();
});
