import { afterEach, beforeEach, expect, it } from 'vitest';
import { sshKeysHash } from '#shared/api/agent/pod.ts';
import {
  A_MINUTE_MS,
  type ChangingPod,
  createChangingPod,
  GPUS,
  ID,
  MISSING,
  OTHER_IMAGE,
  PROVEN_MS,
} from '../../test/fakes/agents/changing-pod.ts';

let pod: ChangingPod;
beforeEach(() => {
  pod = createChangingPod();
});
afterEach(() => pod.agent().stop());

it('fetches the new image, replaces the container, and keeps the old container until the new container has passed its trial', async () => {
  const before = await pod.launched();
  const release = pod.hold('pullImage');
  await pod.put(2, { image: { reference: OTHER_IMAGE } });
  await pod.settle();
  expect(pod.view()).toMatchObject({
    phase: 'running',
    container_id: before.container_id,
    generation: 2,
    observed_generation: 1,
    image: before.image,
    change: { stage: 'preparing' },
    pull: { layers_total: 0 },
  });
  expect(pod.conditionOf('GenerationReady')).toMatchObject({ status: false, reason: 'NotYet' });
  release();
  await pod.settle();
  expect(pod.view()).toMatchObject({
    phase: 'running',
    change: { generation: 2, stage: 'settling' },
  });
  expect(pod.containers().map(({ status }) => status)).toEqual(['exited', 'running']);
  await pod.pass(PROVEN_MS);
  expect(pod.view()).toMatchObject({ observed_generation: 2, change: null, ports: before.ports });
  expect(pod.view().container_id).not.toBe(before.container_id);
  expect(pod.containers()).toMatchObject([{ id: pod.view().container_id, status: 'running' }]);
  expect(pod.conditionOf('GenerationReady')).toMatchObject({ status: true });
});

it('does not stop a pod for an image that cannot be pulled', async () => {
  const before = await pod.launched();
  await pod.put(2, { image: { reference: MISSING } });
  await pod.pass(A_MINUTE_MS);
  const after = pod.view();
  expect(after).toMatchObject({
    phase: 'running',
    container_id: before.container_id,
    restart_count: 0,
    generation: 2,
    observed_generation: 1,
    image: before.image,
    reason: null,
    change: { generation: 2, stage: 'failed', reason: 'ImageNotFound' },
  });
  expect(pod.conditionOf('GenerationReady')).toMatchObject({
    status: false,
    reason: 'ImageNotFound',
  });
  // The refused generation is recorded: it is not retried, and its number cannot be reused.
  await pod.put(2, { image: { reference: MISSING } });
  await pod.settle();
  expect(pod.view()).toEqual(after);
  await expect(pod.put(2)).rejects.toMatchObject({ code: 'conflict' });
  await pod.put(3, { image: { reference: OTHER_IMAGE } });
  await pod.pass(PROVEN_MS);
  expect(pod.view()).toMatchObject({ phase: 'running', observed_generation: 3, change: null });
});

it('retries an unreachable registry a limited number of times', async () => {
  const before = await pod.launched();
  const mend = pod.breakNew('pullImage', 'image_unreachable');
  await pod.put(2, { image: { reference: OTHER_IMAGE } });
  await pod.pass(1_500);
  expect(pod.view().change).toMatchObject({ stage: 'preparing', reason: 'ImageUnreachable' });
  mend();
  await pod.pass(A_MINUTE_MS);
  expect(pod.view()).toMatchObject({ observed_generation: 2, change: null });
  pod.breakNew('resolveDigest', 'image_unreachable');
  await pod.put(3, { image: { reference: MISSING } });
  await pod.pass(10 * A_MINUTE_MS);
  expect(pod.view()).toMatchObject({
    phase: 'running',
    observed_generation: 2,
    ports: before.ports,
  });
  expect(pod.view().change).toMatchObject({ stage: 'failed', reason: 'ImageUnreachable' });
});

it('changes the environment of a pod whose registry is unreachable', async () => {
  const { image } = await pod.launched();
  pod.breakNew('pullImage', 'image_unreachable');
  await pod.put(2, { environment: { A: 'b' } });
  await pod.pass(PROVEN_MS);
  expect(pod.view()).toMatchObject({
    phase: 'running',
    observed_generation: 2,
    change: null,
    image,
  });
  expect(pod.containers()).toMatchObject([{ spec: { environment: { A: 'b' } } }]);
});

it('keeps host ports, leases new ones, and releases old ports and GPUs only after the commit', async () => {
  const [one = '', two = ''] = GPUS;
  const before = await pod.launched({ internal_ports: [80, 81], gpu_uuids: [one] });
  const wanted = { internal_ports: [81, 82], gpu_uuids: [two] };
  await pod.put(2, wanted);
  await pod.settle();
  const { leases, gpuLeases } = pod.agent().core;
  expect(leases.heldBy('port', ID).map(({ slot }) => slot)).toEqual(['80', '81', '82']);
  expect(gpuLeases.uuidsOf(ID)).toEqual([one, two]);
  await pod.pass(PROVEN_MS);
  expect(pod.view().ports).toEqual({ '81': before.ports['81'], '82': 20_002 });
  expect(leases.heldBy('port', ID).map(({ slot }) => slot)).toEqual(['81', '82']);
  expect(gpuLeases.uuidsOf(ID)).toEqual([two]);
});

it('applies new SSH keys at once and keeps them after a rollback', async () => {
  const ports = { internal_ports: [22] };
  await pod.launched({ ...ports, ssh_public_keys: ['ssh-ed25519 one'] });
  await pod.put(2, {
    ...ports,
    ssh_public_keys: ['ssh-ed25519 two'],
    image: { reference: MISSING },
  });
  await pod.settle();
  expect(pod.view()).toMatchObject({
    observed_generation: 1,
    ssh_keys_hash: sshKeysHash(['ssh-ed25519 two']),
  });
  await pod.put(3, { ...ports, ssh_public_keys: ['ssh-ed25519 three'] });
  await pod.settle();
  pod.agent().pods.putSshKeys(ID, ['ssh-ed25519 four']);
  pod.engine.exit(pod.view().container_id ?? '', 1);
  await pod.settle();
  expect(pod.view()).toMatchObject({
    observed_generation: 1,
    ssh_keys_hash: sshKeysHash(['ssh-ed25519 four']),
  });
  expect(pod.told().pods[0]?.authorized_keys).toEqual(['ssh-ed25519 four']);
});
