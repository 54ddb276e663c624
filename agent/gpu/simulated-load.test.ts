import { expect, it } from 'vitest';
import { createSimulatedDriver } from './simulated-gpus.ts';
import { loadOfCores } from './simulated-load.ts';

it.each([
  [null, 8, 0],
  [0.1, 8, 0],
  [0.55, 8, 0.5],
  [1, 8, 1],
  [7, 8, 1],
  [0.3, 0.5, 0.5],
  [0.05, 0.05, 0],
])('takes %s busy cores of %s as the load %s', (cores, limit, load) => {
  expect(loadOfCores(cores, limit)).toBeCloseTo(load);
});

it('shows the load of a card in all its values, and cools down without load', async () => {
  const driver = createSimulatedDriver('a', ['NVIDIA H100 80GB HBM3', 'NVIDIA H100 80GB HBM3']);
  const idle = await driver.read();
  const uuid = idle.devices[0]?.uuid ?? '';
  const temperatures: number[] = [];
  for (let reading = 0; reading < 30; reading += 1) {
    driver.follow?.(new Map([[uuid, 1]]));
    temperatures.push((await driver.read()).devices[0]?.temperature_c ?? 0);
  }
  const { devices, cards } = await driver.read();
  expect(devices[0]).toMatchObject({
    utilization_percent: 100,
    temperature_c: 78,
    power_draw_w: 644,
    memory_used_mib: 69_325,
    graphics_clock_mhz: 1_980,
  });
  expect(devices[1]).toEqual(idle.devices[1]);
  expect(cards[0]?.values.get('utilization.gpu')).toBe('100');
  expect(cards[0]?.values.get('memory.used')).toBe('69325');
  expect(temperatures).toEqual(temperatures.toSorted((a, b) => a - b));
  expect(temperatures[0]).toBeLessThan(50);
  for (let reading = 0; reading < 30; reading += 1) driver.follow?.(new Map());
  expect(await driver.read()).toEqual(idle);
});

it('shows only the memory of a MIG device, because real cards report no more', async () => {
  const driver = createSimulatedDriver('a', ['NVIDIA H100 80GB HBM3[3g.40gb]']);
  const [part] = (await driver.read()).devices;
  driver.follow?.(new Map([[part?.uuid ?? '', 0.5]]));
  const loaded = await driver.read();
  expect(loaded.devices[0]).toEqual({ ...part, memory_used_mib: 19_456 });
  expect(loaded.parts[0]).toMatchObject({ memoryUsedMib: 19_456, memoryFreeMib: 21_504 });
});
