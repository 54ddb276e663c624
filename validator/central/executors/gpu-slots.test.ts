import { expect, it } from 'vitest';
import { testInventory } from '../../../test/fixtures/host-inventory.ts';
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
