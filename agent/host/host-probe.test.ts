import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { expect, it } from 'vitest';
import { Hardware, Inventory } from '#shared/api/agent/inventory.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { createHardware, createReadHardware, hardwareFrom } from './hardware.ts';
import { createCpuUtilization, createHostProbe } from './host-probe.ts';

it('reads the facts of this host', async () => {
  const readHardware = () => Promise.reject(new Error('not known'));
  const probe = createHostProbe({ clock: systemClock, readHardware });
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

it('reads the hardware of this host with systeminformation, in the background', async () => {
  const readHardware = createReadHardware(runCommand);
  const clock = createManualClock();
  const probe = createHostProbe({ clock, readHardware });
  await clock.advance(30_000);
  expect((await probe.read('/')).hardware).toBeNull();
  const hardware = await eventually('the hardware', async () => (await probe.read('/')).hardware);
  expect(Hardware.parse(hardware).physical_cores).toBeGreaterThan(0);
  expect(hardware.sockets).toBeGreaterThan(0);
  expect((await readHardware()).cpuModel).not.toBe('');
}, 60_000);

it('treats empty values and placeholders of the firmware as unknown', () => {
  const { hardware, cpuModel } = hardwareFrom({
    vendor: ' Supermicro ',
    product: 'Default string',
    board: ' ',
    firmware: 'AMI  5.27',
    virtual: false,
    sockets: 2,
    physicalCores: 0,
    memoryType: 'DDR5',
    memoryMhz: null,
  });
  expect(hardware).toEqual({
    vendor: 'Supermicro',
    product: null,
    board: null,
    firmware: 'AMI 5.27',
    virtual: false,
    sockets: 2,
    physical_cores: null,
    memory_type: 'DDR5',
    memory_mhz: null,
  });
  expect(cpuModel).toBe('');
  expect(() => hardwareFrom('garbage')).toThrow();
});

it('reads the hardware once, and an hour after a failure again', async () => {
  const clock = createManualClock();
  let reads = 0;
  const hardware = createHardware(clock, async () => {
    reads += 1;
    if (reads === 1) throw new Error('no program');
    return hardwareFrom({ sockets: 1 });
  });
  expect(hardware()).toBeNull();
  expect(reads).toBe(0);
  await clock.advance(30_000);
  expect(hardware()).toBeNull();
  await clock.advance(3_599_999);
  expect(hardware()).toBeNull();
  expect(reads).toBe(1);
  await clock.advance(1);
  hardware();
  await clock.advance(0);
  expect(hardware()?.hardware.sockets).toBe(1);
  await clock.advance(7_200_000);
  hardware();
  expect(reads).toBe(2);
});
