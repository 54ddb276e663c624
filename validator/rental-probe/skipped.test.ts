/** What is said of a host that is not rented for a probe because a pod is there, or comes meanwhile. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { AgentClient } from '#shared/agent-api/agent-client.ts';
import type { PodView } from '#shared/agent-api/pod.ts';
import { ApiError } from '#shared/errors.ts';
import { createLog } from '#shared/log.ts';
import { systemRandom } from '#shared/random.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { createTestLedger } from '../../test/fakes/test-ledger.ts';
import { factsOf } from '../../test/fixtures/check-facts.ts';
import type { Ledger } from '../ledger/ledger.tables.ts';
import { createRentalProbes } from './rental-probe.service.ts';

const POD = '00000000-0000-4000-8000-0000000000aa';

let ledger: Ledger;
beforeEach(async () => {
  ledger = await createTestLedger();
});
afterEach(() => ledger.destroy());

const probes = () =>
  createRentalProbes({
    ...{ ledger, clock: createManualClock(), random: systemRandom },
    log: createLog({ name: 'test', level: 'silent' }),
    logIn: () => Promise.reject(new Error('no way to the pod')),
  });

/** Its n-th answer to what pods it has; it takes none. */
function agentWith(...answers: string[][]): AgentClient {
  const gone = async () => {
    throw new ApiError('pod_not_found', 'There is no such pod');
  };
  return {
    ...({} as AgentClient),
    listPods: async () =>
      (answers.shift() ?? []).map((id) => ({ id, phase: 'running' }) as unknown as PodView),
    putPod: async () => {
      throw new ApiError('bad_request', 'no room');
    },
    getPod: gone,
    deletePod: gone,
  };
}

it('names the pod, and is of a regular check alone something new', async () => {
  const look = (isAsked: boolean) => probes().look(factsOf(), agentWith([POD]), isAsked);
  expect(await look(false)).toMatchObject({ status: 'not_run', pods: [POD], repeated: false });
  expect(await look(true)).toMatchObject({ status: 'not_run', pods: [POD], repeated: true });
  expect(await probes().look(factsOf({ rented: true }), agentWith([POD]), false)).toBeNull();
});

it('names the pod that excuses a probe that failed', async () => {
  const facts = factsOf();
  const excused = await probes().look(facts, agentWith([], [POD]), false);
  expect(excused).toMatchObject({ status: 'not_run', pods: [POD], repeated: false });
  // As it is kept for the next time, too.
  const next = await probes().look(facts, agentWith([]), false);
  expect(next).toMatchObject({ status: 'not_run', pods: [POD], repeated: true });
});

it('is a failure where no pod is in the way', async () => {
  const failed = await probes().look(factsOf(), agentWith([], []), false);
  expect(failed).toMatchObject({ status: 'failed', step: 'launch', pods: [] });
});
