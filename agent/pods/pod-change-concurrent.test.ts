import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  A_MINUTE_MS,
  type ChangingPod,
  createChangingPod,
  GPUS,
  ID,
  OTHER_IMAGE,
  PROVEN_MS,
} from '../../test/fakes/agents/changing-pod.ts';
import { REBOOT_STAGGER_MS } from './backoff.ts';

let pod: ChangingPod;
beforeEach(() => {
  pod = createChangingPod();
});
afterEach(() => pod.agent().stop());

it('replaces a staged generation by a newer one', async () => {
  const before = await pod.launched();
  const release = pod.hold('pullImage');
  await pod.put(2, { image: { reference: OTHER_IMAGE }, internal_ports: [99] });
  await pod.settle();
  await pod.put(3, { environment: { A: 'b' } });
  release();
  await pod.pass(PROVEN_MS);
  expect(pod.view()).toMatchObject({ observed_generation: 3, change: null, ports: before.ports });
  expect(pod.containers()).toMatchObject([{ spec: { environment: { A: 'b' } } }]);
});

it('rolls back to the last committed generation if two uncommitted generations followed it', async () => {
  const before = await pod.launched();
  await pod.put(2, { environment: { TWO: '2' } });
  await pod.settle();
  await pod.put(3, { environment: { THREE: '3' } });
  await pod.settle();
  expect(pod.running()).toMatchObject([{ spec: { environment: { THREE: '3' } } }]);
  expect(pod.containers()).toHaveLength(2);
  pod.engine.exit(pod.view().container_id ?? '', 1);
  await pod.settle();
  expect(pod.view()).toMatchObject({
    container_id: before.container_id,
    change: { generation: 3 },
  });
  expect(pod.running()).toHaveLength(1);
});

it('applies a staged generation after its predecessor fails its trial', async () => {
  await pod.launched();
  await pod.put(2);
  await pod.settle();
  const release = pod.hold('pullImage');
  await pod.put(3, { image: { reference: OTHER_IMAGE } });
  await pod.settle();
  pod.engine.exit(pod.view().container_id ?? '', 1);
  await pod.settle();
  expect(pod.view()).toMatchObject({ observed_generation: 1, change: { stage: 'preparing' } });
  release();
  await pod.pass(PROVEN_MS);
  expect(pod.view()).toMatchObject({ observed_generation: 3, change: null });
});

it.each(['preparing', 'replacing', 'settling'] as const)(
  'removes every object of a pod during the stage %s of a change',
  async (stage) => {
    await pod.launched({ gpu_uuids: GPUS });
    const release = pod.hold(stage === 'preparing' ? 'pullImage' : 'createContainer');
    await pod.put(2, { image: { reference: OTHER_IMAGE }, internal_ports: [80, 81] });
    await pod.settle();
    if (stage === 'settling') release();
    await pod.settle();
    expect(pod.view().change).toMatchObject({ stage });
    pod.agent().pods.remove(ID);
    await pod.settle();
    release();
    await pod.pass(A_MINUTE_MS);
    expect(pod.view()).toMatchObject({ phase: 'removed', change: null });
    expect(pod.containers()).toEqual([]);
    expect(pod.agent().core.leases.heldBy('port', ID)).toEqual([]);
    expect(pod.agent().core.gpuLeases.uuidsOf(ID)).toEqual([]);
  },
);

it('restarts an old container that exits while the new image is fetched', async () => {
  const before = await pod.launched();
  const release = pod.hold('pullImage');
  await pod.put(2, { image: { reference: OTHER_IMAGE } });
  await pod.settle();
  pod.engine.exit(before.container_id ?? '', 1);
  await pod.pass(A_MINUTE_MS);
  expect(pod.view()).toMatchObject({
    phase: 'running',
    restart_count: 1,
    change: { generation: 2 },
  });
  pod.agent().pods.reboot(ID, 1);
  await pod.settle();
  expect(pod.view()).toMatchObject({ phase: 'running', reboots_done: 1, observed_generation: 1 });
  release();
  await pod.pass(PROVEN_MS);
  expect(pod.view()).toMatchObject({ observed_generation: 2, change: null });
});

it('counts a requested reboot as completed by the change in progress', async () => {
  await pod.launched();
  await pod.put(2);
  await pod.settle();
  const startedMs = pod.running()[0]?.startedMs;
  expect(pod.agent().pods.reboot(ID, 1)).toMatchObject({ reboots_requested: 1, reboots_done: 1 });
  await pod.pass(PROVEN_MS);
  expect(pod.running()).toMatchObject([{ startedMs }]);
  expect(pod.view()).toMatchObject({ observed_generation: 2, reboots_done: 1 });
});

it('continues a change after an outage of the engine', async () => {
  await pod.launched();
  const release = pod.hold('pullImage');
  await pod.put(2, { image: { reference: OTHER_IMAGE } });
  await pod.settle();
  pod.engine.setAway(true);
  release();
  await pod.pass(A_MINUTE_MS);
  expect(pod.view()).toMatchObject({ phase: 'running', change: { stage: 'preparing' } });
  pod.engine.setAway(false);
  await pod.pass(A_MINUTE_MS);
  expect(pod.view()).toMatchObject({ observed_generation: 2, change: null });
});

it('continues a change that a reboot of the host interrupted', async () => {
  await pod.launched();
  await pod.put(2, { environment: { A: 'b' } });
  await pod.settle();
  expect(pod.view().change).toMatchObject({ stage: 'settling' });
  await pod.agent().stop();
  for (const { id } of pod.running()) pod.engine.exit(id, 137);
  await pod.clock.advance(10 * A_MINUTE_MS);
  pod.bootAgain('another boot');
  await pod.pass(REBOOT_STAGGER_MS + PROVEN_MS);
  expect(pod.view()).toMatchObject({
    phase: 'running',
    observed_generation: 2,
    change: null,
    last_exit: { reason: 'HostReboot' },
  });
  expect(pod.containers()).toMatchObject([{ spec: { environment: { A: 'b' } } }]);
});
