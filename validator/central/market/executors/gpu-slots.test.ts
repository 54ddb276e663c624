import { expect, it } from 'vitest';
import { testInventory } from '../../../../test/fixtures/host-inventory.ts';
import { freeSlotsFor } from './gpu-slots.ts';

const ID = '11111111-1111-4111-8111-111111111111';

it('adds a slot for every device that no pod holds', () => {
  const { devices } = testInventory(ID, { gpus: 2 }).gpu;
  const [first, second] = devices;
  const held = [{ executor_id: ID, idx: 0, gpu_uuid: String(first?.uuid), pod_id: 'p' }];
  expect(freeSlotsFor(ID, held, devices)).toEqual([
    { executor_id: ID, idx: 1, gpu_uuid: second?.uuid, pod_id: null },
  ]);
});

it('gives a swapped card another index while a pod holds its own', () => {
  const { devices } = testInventory(ID, { gpus: 1 }).gpu;
  const held = [{ executor_id: ID, idx: 0, gpu_uuid: 'GPU-gone', pod_id: 'p' }];
  expect(freeSlotsFor(ID, held, devices)).toMatchObject([{ idx: 1, gpu_uuid: devices[0]?.uuid }]);
});

it('has no slot for a device that its host keeps from new pods', () => {
  const { devices } = testInventory(ID, { gpus: 4 }).gpu;
  const [sound, dirty, cordoned, held] = devices;
  if (!sound || !dirty || !cordoned || !held) throw new Error('four devices');
  const slots = freeSlotsFor(
    ID,
    [{ executor_id: ID, idx: 3, gpu_uuid: held.uuid, pod_id: 'p' }],
    [
      sound,
      { ...dirty, lease_state: 'dirty' },
      { ...cordoned, cordoned: { reason: 'Xid: Xid 79', since_ms: 1 } },
      held,
    ],
  );
  expect(slots.map(({ gpu_uuid }) => gpu_uuid)).toEqual([sound.uuid]);
});

it('gives each part of a split card a slot of its own', () => {
  const [card] = testInventory(ID, { gpus: 1 }).gpu.devices;
  if (card === undefined) throw new Error('one device');
  const part = (uuid: string) => ({
    ...card,
    uuid,
    mig: { profile: '1g.10gb', parent_uuid: card.uuid },
  });
  const slots = freeSlotsFor(ID, [], [part('MIG-a'), part('MIG-b'), part('MIG-c')]);
  expect(slots.map(({ idx, gpu_uuid }) => [idx, gpu_uuid])).toEqual([
    [0, 'MIG-a'],
    [1, 'MIG-b'],
    [2, 'MIG-c'],
  ]);
});
