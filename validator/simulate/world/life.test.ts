/** Tests that nothing returns after the life of a process, and that its clients notice the end. */
import { expect, it } from 'vitest';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { collectGarbage } from '../../../test/measure/collect-garbage.ts';
import { beginLife, ConnectionLost } from './life.ts';

const turn = () => new Promise((resolve) => setImmediate(resolve));

it('loses the results of what the process began', async () => {
  const life = beginLife(createManualClock());
  const answer = Promise.withResolvers<string>();
  const port = life.guard({ name: 'port', ask: () => answer.promise, size: () => 3 });
  const results: string[] = [];
  void port.ask().then((result) => results.push(result));
  expect([port.name, port.size()]).toEqual(['port', 3]);
  life.end();
  answer.resolve('late');
  void port.ask().then((result) => results.push(result));
  await turn();
  expect(results).toEqual([]);
});

it('fires no timer of the process', async () => {
  const clock = createManualClock();
  const life = beginLife(clock);
  const woken: string[] = [];
  void life.clock.sleep(10).then(() => woken.push('sleep'));
  const deadline = life.clock.deadline(10);
  life.end();
  await clock.advance(20);
  await turn();
  expect(woken).toEqual([]);
  expect(deadline.aborted).toBe(false);
});

it('rejects the requests of clients at the end, and answers those before', async () => {
  const life = beginLife(createManualClock());
  expect(await life.serve(Promise.resolve(1))).toBe(1);
  const pending = life.serve(new Promise(() => undefined));
  life.end();
  await expect(pending).rejects.toThrow(ConnectionLost);
});

/** Begins to wait for the port. Returns a reference that does not retain the state of the wait. */
function wait(port: { ask(): Promise<number> }): WeakRef<object> {
  const state = { answer: 0 };
  void port.ask().then((answer) => {
    state.answer = answer;
  });
  return new WeakRef(state);
}

it('retains nothing that waits for an ended process', async () => {
  const life = beginLife(createManualClock());
  const unanswered = new Promise<number>(() => undefined);
  const port = life.guard({ ask: () => unanswered });
  life.end();
  const waits = wait(port);
  await turn();
  collectGarbage();
  expect(waits.deref()).toBeUndefined();
});
