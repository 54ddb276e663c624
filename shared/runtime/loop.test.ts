import { expect, it } from 'vitest';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { runEach, startLoop } from './loop.ts';

function setUp(run: (signal: AbortSignal, count: number) => Promise<void> = async () => undefined) {
  const clock = createManualClock();
  const state = { runs: 0, errors: [] as unknown[] };
  const loop = startLoop({
    clock,
    intervalMs: 1_000,
    run: (signal) => {
      state.runs += 1;
      return run(signal, state.runs);
    },
    onError: (error) => state.errors.push(error),
  });
  return { clock, state, loop };
}

it('runs when it is started, then after every pause', async () => {
  const { clock, state, loop } = setUp();
  expect(state.runs).toBe(1);
  await clock.advance(999);
  expect(state.runs).toBe(1);
  await clock.advance(1);
  expect(state.runs).toBe(2);
  await loop.stop();
  await clock.advance(10_000);
  expect(state.runs).toBe(2);
});

it('ends the pause when woken, and runs once more for any number of wakes during a run', async () => {
  const gate = Promise.withResolvers<void>();
  const { clock, state, loop } = setUp(async (_signal, count) => {
    if (count === 1) await gate.promise;
  });
  loop.wake();
  loop.wake();
  await clock.advance(5_000);
  expect(state.runs).toBe(1);
  gate.resolve();
  await clock.advance(0);
  expect(state.runs).toBe(2);
  loop.wake();
  await clock.advance(0);
  expect(state.runs).toBe(3);
  await loop.stop();
});

it('continues after a failure and reports it', async () => {
  const { clock, state, loop } = setUp(async (_signal, count) => {
    if (count === 1) throw new Error('first');
  });
  await clock.advance(1_000);
  expect(state).toMatchObject({ runs: 2, errors: [new Error('first')] });
  await loop.stop();
});

it('stops by aborting the current run and waiting until it ends', async () => {
  let isOver = false;
  const { state, loop } = setUp(async (signal) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    isOver = true;
    throw new Error('stopped');
  });
  await loop.stop();
  expect(isOver).toBe(true);
  expect(state.errors).toEqual([]);
});

it('runs every step in order and throws all failures at the end', async () => {
  const taken: string[] = [];
  const step = (name: string, error?: Error) => async () => {
    await Promise.resolve();
    taken.push(name);
    if (error !== undefined) throw error;
  };
  const first = new Error('first');
  const third = new Error('third');
  const steps = [step('a', first), step('b'), step('c', third), step('d')];
  await expect(runEach(steps)).rejects.toMatchObject({ errors: [first, third] });
  expect(taken).toEqual(['a', 'b', 'c', 'd']);
  await expect(runEach([step('e')])).resolves.toBeUndefined();
});
