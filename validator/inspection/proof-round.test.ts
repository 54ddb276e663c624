import { afterEach, beforeEach, expect, it } from 'vitest';
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { checkRun } from '../../test/fixtures/check-run.ts';
import { SMALL_PROOF } from './proof/proof-facts.ts';
import { createVerifier, type Verifier } from './proof/verifier.ts';
import { createProofRounds } from './proof-round.ts';

let verifier: Verifier;
beforeEach(() => {
  verifier = createVerifier();
});
afterEach(() => verifier.close());

it('asks for no proof beside what this validator has on the host itself, and holds nobody up', async () => {
  let asked = 0;
  const client: AgentClient = {
    ...({} as AgentClient),
    listPods: async () => [],
    async challenge() {
      asked += 1;
      throw new ApiError('conflict', 'A pod is on this host: nothing is proven beside it');
    },
  };
  const rounds = createProofRounds({
    ...{ clock: createManualClock(), random: systemRandom, size: SMALL_PROOF, intervalMs: 1_000 },
    paces: { expected: async () => ({ modelMs: null, ownMs: null, others: 0 }) },
    ...{ verifier, onProven: () => undefined },
  });
  const { facts } = checkRun({ atMs: 1_000 });
  const round = rounds.begin(3);
  const left = round.place();
  left.leave();
  left.leave();
  const nothing = await round.place().prove(facts, client, false);
  expect([nothing, asked]).toEqual([{ proof: null, gpu_proof: null }, 0]);
  // The last of three: nobody is missing, and it begins at once.
  const { proof } = await round.place().prove(facts, client, true);
  expect([proof?.reason, asked > 0]).toEqual(['POW_REFUSED', true]);
});
