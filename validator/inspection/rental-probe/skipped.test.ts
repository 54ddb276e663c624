/** Results of rental probes on hosts that have a pod or receive a pod during the probe. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { AgentClient } from '#shared/api/agent/agent-client.ts';
import type { PodPutInput, PodView } from '#shared/api/agent/pod.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { createLog } from '#shared/runtime/log.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { createTestStore } from '../../../test/fakes/scenes/test-evidence-store.ts';
import { factsOf, resultOf } from '../../../test/fixtures/check-facts.ts';
import type { EvidenceStore } from '../../store/tables.ts';
import { createRentalProbes } from './rental-probe.service.ts';

const POD = '00000000-0000-4000-8000-0000000000aa';

let store: EvidenceStore;
beforeEach(async () => {
  store = await createTestStore();
});
afterEach(() => store.destroy());

const probes = () =>
  createRentalProbes({
    store,
    clock: createManualClock(),
    random: systemRandom,
    log: createLog({ name: 'test', level: 'silent' }),
    logIn: () => Promise.reject(new Error('no way to the pod')),
  });

/** Client of an agent that rejects every pod. Its n-th list of pods is the n-th argument; later lists are empty. */
function agentWith(...answers: string[][]): AgentClient {
  return refusing([new ApiError('bad_request', 'no room')], answers).agent;
}

function refusing(refusals: ApiError[], answers: string[][] = []) {
  const launched: PodPutInput[] = [];
  const notFound = async () => {
    throw new ApiError('pod_not_found', 'There is no such pod');
  };
  const agent: AgentClient = {
    ...({} as AgentClient),
    listPods: async () =>
      (answers.shift() ?? []).map((id) => ({ id, phase: 'running' }) as unknown as PodView),
    putPod: async (_, spec) => {
      launched.push(spec);
      throw refusals[Math.min(launched.length, refusals.length) - 1];
    },
    getPod: notFound,
    deletePod: notFound,
  };
  return { agent, launched };
}

const byRule = (rule: string) => new ApiError('spec_refused', 'too much', { details: { rule } });

it('launches the smallest pod if the provider’s policy rejects the whole host, and launches no further pod', async () => {
  const facts = factsOf();
  const { agent, launched } = refusing([byRule('max_cpu_cores'), byRule('max_cpu_cores')]);
  const rental = await probes().probe(facts, agent, false);
  expect(rental).toMatchObject({ status: 'failed', step: 'launch', detail: 'too much' });
  const [whole, least] = launched;
  expect(whole?.limits.cpu_cores).toBe(facts.inventory?.cpu.cores);
  expect(least?.limits).toMatchObject({ cpu_cores: 1, memory_bytes: 2 ** 30, disk_bytes: 2 ** 30 });
  expect(least?.gpu_uuids).toHaveLength(1);
  const host = refusing([byRule('host')]);
  await store.deleteFrom('rental_probes').execute();
  expect(await probes().probe(facts, host.agent, false)).toMatchObject({ status: 'failed' });
  expect(host.launched).toHaveLength(1);
});

it.each([
  ['rejects the probe as malformed', new ApiError('validation_error', 'no such field')],
  ['does not answer', new ApiError('upstream_unavailable', 'socket hang up')],
])('reports a refused probe instead of a full host if the agent %s', async (_, error) => {
  const rental = await probes().probe(factsOf(), refusing([error]).agent, false);
  expect(rental).toMatchObject({ status: 'not_run', refused: true, pods: [] });
  const judged = (streak: number) =>
    resultOf('rental_probe', factsOf({ measured: { rental, streaks: { rental_probe: streak } } }));
  expect([judged(1).passed, judged(2).reason_code]).toEqual([true, 'RENTAL_PROBE_SKIPPED']);
  const result = await probes().probe(factsOf(), refusing([error]).agent, true);
  expect(result).toMatchObject({ refused: true, repeated: true });
});

it('names the pod that blocks a probe, and counts the result as new only in regular checks', async () => {
  const probe = (isAsked: boolean) => probes().probe(factsOf(), agentWith([POD]), isAsked);
  expect(await probe(false)).toMatchObject({ status: 'not_run', pods: [POD], repeated: false });
  expect(await probe(true)).toMatchObject({ status: 'not_run', pods: [POD], repeated: true });
  expect(await probes().probe(factsOf({ rented: true }), agentWith([POD]), false)).toBeNull();
});

it('names the pod that makes a failed probe inconclusive', async () => {
  const facts = factsOf();
  const excused = await probes().probe(facts, agentWith([], [POD]), false);
  expect(excused).toMatchObject({ status: 'not_run', pods: [POD], repeated: false });
  // The stored result names the pod too.
  const next = await probes().probe(facts, agentWith([]), false);
  expect(next).toMatchObject({ status: 'not_run', pods: [POD], repeated: true });
});

it('fails if no pod blocks the probe', async () => {
  const failed = await probes().probe(factsOf(), agentWith([], []), false);
  expect(failed).toMatchObject({ status: 'failed', step: 'launch', pods: [] });
});
