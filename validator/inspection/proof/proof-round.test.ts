import { afterEach, beforeEach, expect, it } from 'vitest';
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { checkRun } from '../../../test/fixtures/check-run.ts';
import { SMALL_PROOF } from './host-proof.ts';
import { createBarrier, createProofRounds } from './proof-round.ts';
import { createVerifier, type Verifier } from './verifier.ts';

let verifier: Verifier;
beforeEach(() => {
  verifier = createVerifier();
});
afterEach(() => verifier.close());

it('requests no proof while a pod of this validator is on the host, and does not delay other executors', async () => {
  let requests = 0;
  const client: AgentClient = {
    ...({} as AgentClient),
    listPods: async () => [],
    async challenge() {
      requests += 1;
      throw new ApiError('conflict', 'A pod is on this host, so no proof runs');
    },
  };
  const rounds = createProofRounds({
    clock: createManualClock(),
    random: systemRandom,
    size: SMALL_PROOF,
    intervalMs: 1_000,
    baselines: { expected: async () => ({ modelMs: null, ownMs: null, others: 0 }) },
    verifier,
    onProven: () => undefined,
  });
  const { facts } = checkRun({ atMs: 1_000 });
  const round = rounds.begin(3);
  const left = round.place();
  left.leave();
  left.leave();
  const nothing = await round.place().prove(facts, client, false);
  expect([nothing, requests]).toEqual([{ proof: null, gpu_proof: null }, 0]);
  // The last of three participants opens the barrier at once.
  const { proof } = await round.place().prove(facts, client, true);
  expect([proof?.reason, requests > 0]).toEqual(['POW_REFUSED', true]);
});

/** Number of participants that passed. */
function waiters(count: number) {
  const clock = createManualClock();
  const barrier = createBarrier(clock, count, 1_000);
  const passed: number[] = [];
  const come = (who: number) => void barrier.arrive().then(() => passed.push(who));
  return { clock, barrier, passed, come };
}

it('a barrier opens once all participants have arrived or left', async () => {
  const { clock, barrier, passed, come } = waiters(3);
  come(1);
  come(2);
  await clock.advance(500);
  expect(passed).toEqual([]);
  barrier.leave();
  await clock.advance(0);
  expect(passed).toEqual([1, 2]);
});

it('a barrier opens at the timeout of the first participant, and stays open', async () => {
  const { clock, passed, come } = waiters(3);
  come(1);
  await clock.advance(1_000);
  expect(passed).toEqual([1]);
  come(2);
  await clock.advance(0);
  expect(passed).toEqual([1, 2]);
});
