import { expect, it } from 'vitest';
import { createProgress } from '#shared/runtime/progress.ts';
import type { SupervisedChild } from '#shared/runtime/supervised-child.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { awaitAgents, type StartingAgent, startProblem } from './await-agents.ts';

const REASON = 'The disk is too small (DISK_TOO_SMALL)';

function child(change: Partial<SupervisedChild> = {}): SupervisedChild {
  return {
    name: 'agent-1',
    pid: () => 1,
    hasServed: () => true,
    startFailure: () => null,
    ended: new Promise(() => undefined),
    stop: async () => undefined,
    ...change,
  };
}

function scene() {
  const clock = createManualClock();
  const agent: StartingAgent = { name: 'agent-1', isVerified: false, reasons: [] };
  const printed: string[] = [];
  const progress = createProgress(clock, { write: (text: string) => printed.push(text) });
  const interruption = new AbortController();
  const wait = (one = child()) =>
    awaitAgents({
      children: [one],
      states: async () => [agent],
      clock,
      progress,
      signal: interruption.signal,
    });
  return { clock, agent, printed, interruption, wait };
}

it('waits for a slow agent for minutes, and prints why its node is not verified', async () => {
  const { clock, agent, printed, wait } = scene();
  let isReady = false;
  const waiting = wait().then(() => {
    isReady = true;
  });
  await clock.advance(5 * 60_000);
  expect(isReady).toBe(false);
  expect(printed).toEqual(['still waiting: agent-1: no verdict yet\n']);
  Object.assign(agent, { reasons: [REASON] });
  await clock.advance(60_000);
  expect(printed[1]).toBe(`still waiting: agent-1: ${REASON}\n`);
  Object.assign(agent, { isVerified: true });
  await clock.advance(1_000);
  await waiting;
});

it('fails with the reason of an agent that does not start', async () => {
  const { wait } = scene();
  const failure = 'agent-1 ended 3 times in a row: exit code 1 (log: agent-1.log)';
  await expect(wait(child({ startFailure: () => new Error(failure) }))).rejects.toThrow(failure);
});

it('fails after 15 minutes with the reasons of the verdict', () => {
  const agents = [{ name: 'agent-1', isVerified: false, reasons: [REASON] }];
  expect(startProblem([child()], agents, 14 * 60_000)).toBeNull();
  expect(startProblem([child()], agents, 16 * 60_000)?.message).toBe(
    `the start took longer than 15 minutes: agent-1: ${REASON}`,
  );
});

it('ends when the start is interrupted', async () => {
  const { clock, interruption, wait } = scene();
  const waiting = expect(wait()).rejects.toThrow('interrupted');
  await clock.advance(1_000);
  interruption.abort(new Error('interrupted'));
  await waiting;
});
