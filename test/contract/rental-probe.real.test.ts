/** Rental probes of a real agent with its SSH gateway, on the real Docker engine. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import type { PodSpecInput } from '#shared/api/agent/pod.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { systemRandom } from '#shared/runtime/random.ts';
import { LABELS } from '../../agent/containers/engine/engine.ts';
import type { Facts } from '../../validator/checks/check.ts';
import { rentalProbe, sshReach as sshReachCheck } from '../../validator/checks/rental.check.ts';
import { sshReach } from '../../validator/inspection/inspect.ts';
import {
  beginRentalProbe,
  findRentalProbe,
} from '../../validator/inspection/rental-probe/rental-probe.store.ts';
import { yieldedToRenter } from '../../validator/inspection/rental-probe/rental-probe.ts';
import { readBanner } from '../../validator/inspection/rental-probe/ssh-session.ts';
import { openEvidenceStore } from '../../validator/store/evidence-store.ts';
import type { EvidenceStore } from '../../validator/store/tables.ts';
import { podSpec } from '../fakes/agents/test-agent.ts';
import { eventually } from '../fakes/eventually.ts';
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

async function containersLeft(executorId: string) {
  return host.engine.listContainers({ [LABELS.executor]: executorId, [LABELS.kind]: 'pod' });
}

it('the probe rents the whole host, logs in, finds the offered hardware and removes its pod; the result remains valid', async () => {
  const facts = await host.factsOf();
  const probes = probesOn(store);
  const result = await probes.probe(facts, host.client(), false);
  expect(result).toMatchObject({ status: 'passed', step: null, detail: '', repeated: false });
  expect(result?.memory?.seen_kib).toBeGreaterThanOrEqual(result?.memory?.given_kib ?? Infinity);
  expect([await host.podsLeft(), await containersLeft(facts.executor.id)]).toEqual([[], []]);
  const judged = rentalProbe.judge({ ...facts, measured: { ...facts.measured, rental: result } });
  expect(judged.status).toBe('ok');
  const again = await probesOn(store).probe(await host.factsOf(), host.client(), true);
  expect(again).toEqual({ ...result, repeated: true });
  expect((await host.factsOf()).inventory.gpu.devices.map((device) => device.lease_state)).toEqual([
    'free',
    'free',
  ]);
});

it('the probe ends when a renter rents the host', async () => {
  const facts = await host.factsOf();
  const probes = probesOn(store);
  const looking = probes.probe(facts, host.client(), false);
  const { id } = facts.executor;
  const [pod] = await eventually('the probe is running', async () => {
    const pods = await host.podsLeft();
    return pods.length === 1 && pods;
  });
  expect(await probes.podsAt(id, systemClock.now())).toEqual([pod?.id]);
  // While the probe's pod exists, `clear` returns false, so a concurrent inspection runs no proof on the host.
  expect(await probes.clear(id, host.client())).toBe(false);
  expect(await probes.podsAt(id, systemClock.now() + 3_600_000)).toEqual([]);
  await probes.yieldTo(id);
  expect(await host.podsLeft()).toEqual([]);
  const rental = await looking;
  expect([rental?.status, yieldedToRenter(rental)]).toEqual(['not_run', true]);
  expect(await probes.podsAt(id, systemClock.now() + 1)).toEqual([]);
  expect(await probes.clear(id, host.client())).toBe(true);
});

it('the probe first removes the probe pod of a validator that was killed', async () => {
  const facts = await host.factsOf({ rented: true });
  const podId = systemRandom.uuid();
  const spec: PodSpecInput = podSpec({ remove_after_seconds: 600 });
  const begun = { executor_id: facts.executor.id, pod_id: podId, started_ms: systemClock.now() };
  await beginRentalProbe(store, begun);
  await host.client().putPod(podId, spec);
  const probes = probesOn(store);
  await eventually('the removal is recorded', async () => {
    await probes.probe(facts, host.client(), false);
    return (await findRentalProbe(store, facts.executor.id))?.ended_ms !== null;
  });
  expect(await host.podsLeft()).toEqual([]);
});

it('on a host with a pod, the validator only checks that the pod’s SSH port has the expected identity', async () => {
  const pod = await host.launch();
  const facts = await host.factsOf();
  const skipped = { status: 'not_run', pods: [pod.id] };
  expect(await probesOn(store).probe(facts, host.client(), true)).toMatchObject(skipped);
  expect((await host.podsLeft()).map(({ id }) => id)).toEqual([pod.id]);
  const pods = (await host.podsLeft()).map((view) => ({ ...view, phase_since_ms: 0 }));
  const reach = (executor: Facts['executor']) =>
    sshReach({ readBanner, clock: systemClock }, executor, pods);
  expect(await reach(facts.executor)).toEqual([{ pod: pod.id, problem: null }]);
  const ssh = await reach({ ...facts.executor, executor_ip_address: '127.0.0.2' });
  expect(sshReachCheck.judge({ ...facts, measured: { ...facts.measured, ssh } })).toMatchObject({
    reasonCode: 'POD_SSH_UNREACHABLE',
    inARow: 2,
  });
  await host.client().deletePod(pod.id);
});
