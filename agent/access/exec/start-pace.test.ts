import { expect, it } from 'vitest';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { createStartPace } from './start-pace.ts';

const NEVER = new AbortController().signal;

function setUp() {
  const clock = createManualClock();
  const pace = createStartPace(clock, { burst: 3, perSecond: 2 });
  const started: string[] = [];
  /** Ids that the engine does not report as running yet. */
  const slow = new Set<string>();
  const start = (pod: string, name: string, signal = NEVER) =>
    pace
      .start(pod, signal, async () => {
        started.push(name);
        return { inspect: async () => ({ pid: slow.has(name) ? 0 : 1, exitCode: null }) };
      })
      .then(
        () => undefined,
        () => void started.push(`${name} left`),
      );
  return { clock, start, started, slow };
}

it('delays starts above the burst, in order, and does not delay other pods', async () => {
  const { clock, start, started } = setUp();
  for (const name of ['1', '2', '3', '4', '5']) void start('a', name);
  await clock.advance(0);
  expect(started).toEqual(['1', '2', '3']);
  await start('b', 'b1');
  await clock.advance(500);
  await clock.advance(500);
  expect(started).toEqual(['1', '2', '3', 'b1', '4', '5']);
});

it('saves up to a whole burst again', async () => {
  const { clock, start, started } = setUp();
  for (const name of ['1', '2', '3']) await start('a', name);
  await clock.advance(60_000);
  for (const name of ['4', '5', '6', '7']) void start('a', name);
  await clock.advance(0);
  expect(started).toEqual(['1', '2', '3', '4', '5', '6']);
});

it('clients that leave use no turns', async () => {
  const { clock, start, started } = setUp();
  for (const name of ['1', '2', '3']) await start('a', name);
  const leaving = new AbortController();
  const left = Array.from({ length: 100 }, () => start('a', 'x', leaving.signal));
  void start('a', 'last');
  leaving.abort(new Error('left'));
  await Promise.all(left);
  await clock.advance(500);
  expect(started.filter((name) => name === 'x left')).toHaveLength(100);
  expect(started.at(-1)).toBe('last');
});

it('starts three processes of a pod at the same time, and those of other pods beside them', async () => {
  const { clock, start, started, slow } = setUp();
  for (const name of ['1', '2', '3']) slow.add(name);
  for (const name of ['1', '2', '3', '4']) void start('a', name);
  await start('b', 'b1');
  await clock.advance(2_000);
  expect(started).toEqual(['1', '2', '3', 'b1']);
  slow.delete('2');
  await clock.advance(100);
  expect(started.at(-1)).toBe('4');
});
