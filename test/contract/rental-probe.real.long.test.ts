/** A rental probe that cannot log in, of a real agent with its SSH gateway, on the real Docker engine. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { rentalProbe } from '../../validator/checks/rental.check.ts';
import { openEvidenceStore } from '../../validator/store/evidence-store.ts';
import type { EvidenceStore } from '../../validator/store/tables.ts';
import { type ProbedHost, probesOn, startProbedHost } from '../fakes/scenes/rental-probe-scene.ts';

let host: ProbedHost;
let store: EvidenceStore;
beforeAll(async () => {
  host = await startProbedHost();
});
afterAll(() => host.stop());
beforeEach(async () => {
  store = await openEvidenceStore(':memory:');
});
afterEach(() => store.destroy());

it('the probe reports the failed step for an unreachable port, and still removes its pod', async () => {
  const facts = await host.factsOf({ executor_ip_address: '127.0.0.2' });
  const rental = await probesOn(store).probe(facts, host.client(), false);
  expect(rental).toMatchObject({ status: 'failed', step: 'login' });
  expect(await host.podsLeft()).toEqual([]);
  const judged = rentalProbe.judge({ ...facts, measured: { ...facts.measured, rental } });
  expect(judged).toMatchObject({
    reasonCode: 'RENTAL_PROBE_FAILED',
    remedy: expect.stringContaining('AGENT_PORT_RANGE'),
  });
  // A requested check runs the probe again at once; a scheduled one retries later.
  const again = await host.factsOf();
  expect(await probesOn(store).probe(again, host.client(), false)).toEqual({
    ...rental,
    repeated: true,
  });
  expect(await probesOn(store).probe(again, host.client(), true)).toMatchObject({
    status: 'passed',
  });
});
