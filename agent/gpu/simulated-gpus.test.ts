import { expect, it } from 'vitest';
import { GpuInventory } from '#shared/api/agent/inventory.ts';
import { GpuUuid } from '#shared/api/agent/pod.ts';
import { gpuInventory } from './gpu-inventory.ts';
import { createSimulatedDriver, parseSimulatedGpus } from './simulated-gpus.ts';

it.each([
  ['NVIDIA H100 80GB HBM3*2,NVIDIA GeForce RTX 4090*1', 3],
  [' NVIDIA L4 , NVIDIA L4 * 3 ', 4],
  ['NVIDIA H200*64', 64],
])('parses %j', (text, count) => {
  expect(parseSimulatedGpus(text)).toHaveLength(count);
});

it.each(['', ',', '*2', 'NVIDIA L4*0', 'NVIDIA L4*65', 'NVIDIA L4*2*2', 'NVIDIA L4*x'])(
  'rejects %j',
  (text) => {
    expect(parseSimulatedGpus(text)).toBeNull();
  },
);

it.each([
  ['NVIDIA H100 80GB HBM3[3g.40gb+1g.10gb*4]', 5],
  ['NVIDIA H200[7g.141gb] * 2, NVIDIA L4', 3],
])('splits the cards of %j by MIG', async (text, count) => {
  const cards = parseSimulatedGpus(text) ?? [];
  const { devices } = await createSimulatedDriver('a', cards).read();
  expect(new Set(devices.map(({ uuid }) => GpuUuid.parse(uuid))).size).toBe(count);
  const parts = devices.filter(({ mig }) => mig !== null);
  expect(parts.every(({ uuid }) => uuid.startsWith('MIG-'))).toBe(true);
  // A split card is not offered as a whole.
  const parents = parts.map(({ mig }) => mig?.parent_uuid);
  expect(devices.some(({ uuid }) => parents.includes(uuid))).toBe(false);
});

it.each(['X[3g]', 'X[3g.40gb', 'X[]', 'X[1g.10gb*8]', 'X[1g.10gb*7+1g.10gb]', '[1g.10gb]'])(
  'rejects the MIG split %j',
  (text) => {
    expect(parseSimulatedGpus(text)).toBeNull();
  },
);

it('returns the same cards for an executor at every start, and different cards for another executor', async () => {
  const uuids = async (executorId: string) => {
    const { devices } = await createSimulatedDriver(executorId, ['NVIDIA H200', 'New Card']).read();
    return devices.map((device) => GpuUuid.parse(device.uuid));
  };
  expect(await uuids('a')).toEqual(await uuids('a'));
  expect(new Set([...(await uuids('a')), ...(await uuids('b'))]).size).toBe(4);
});

it('names the holder of each card in the inventory', async () => {
  const driver = createSimulatedDriver('a', ['NVIDIA H100 80GB HBM3', 'New Card']);
  const reading = await driver.read();
  const held = reading.devices[1]?.uuid;
  const inventory = gpuInventory(driver.kind, reading, ({ uuid }) =>
    uuid === held
      ? { leased_by: 'pod', lease_state: 'held', cordoned: null }
      : { leased_by: null, lease_state: 'free', cordoned: null },
  );
  expect(GpuInventory.parse(inventory)).toMatchObject({
    driver: 'simulated',
    driver_version: '570.86.15',
    cuda_version: '12.8',
    error: null,
    devices: [
      { index: 0, memory_total_mib: 81_559, leased_by: null },
      { index: 1, memory_total_mib: 24_576, leased_by: 'pod' },
    ],
  });
});
