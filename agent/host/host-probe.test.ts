import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { expect, it } from 'vitest';
import { Inventory } from '#shared/api/agent/inventory.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { createCpuUtilization, createHostProbe } from './host-probe.ts';

it('reads the facts of this host', async () => {
  const probe = createHostProbe({ clock: systemClock });
  const facts = await probe.read('/');
  const { cpu, memory, disk, os } = Inventory.shape;
  expect(cpu.parse(facts.cpu)).toMatchObject({ utilization_percent: null });
  expect(facts.cpu.cores).toBeGreaterThan(0);
  expect(facts.cpu.model).not.toBe('');
  expect(memory.parse(facts.memory).available_kib).toBeLessThanOrEqual(facts.memory.total_kib);
  expect(disk.parse(facts.disk).free_kib).toBeLessThanOrEqual(facts.disk.total_kib);
  expect(os.parse(facts.os)).toMatchObject({
    hostname: hostname(),
    boot_id: readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim(),
  });
  const again = await probe.read('/no/such/folder');
  expect(again.disk).toMatchObject({ path: '/no/such/folder', total_kib: facts.disk.total_kib });
});

it('computes CPU utilization since the previous call', () => {
  const utilization = createCpuUtilization();
  const stat = (user: number, idle: number) => `cpu  ${user} 0 0 ${idle} 0 0 0 0 0 0\ncpu0 1 1 1\n`;
  expect(utilization(stat(100, 100))).toBeNull();
  expect(utilization(stat(125, 175))).toBe(25);
  expect(utilization(stat(125, 175))).toBeNull();
  expect(utilization(stat(225, 175))).toBe(100);
  expect(utilization('garbage')).toBeNull();
});
