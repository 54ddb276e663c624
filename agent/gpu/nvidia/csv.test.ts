import { expect, it } from 'vitest';
import { csvRow, H100_A, H100_B, TWO_CARDS } from '../../../test/fixtures/nvidia-smi.ts';
import { parseGpuCsv } from './csv.ts';
import { MAX_VALUE_CHARS } from './values.ts';

it('parses every column of every card', () => {
  const { devices, driverVersion, problems } = parseGpuCsv(TWO_CARDS);
  expect(devices.map((device) => device.uuid)).toEqual([H100_A, H100_B]);
  expect(devices[0]).toEqual({
    index: 0,
    uuid: H100_A,
    name: 'NVIDIA H100 80GB HBM3',
    memory_total_mib: 81_559,
    memory_used_mib: 1024,
    utilization_percent: 37,
    temperature_c: 45,
    power_draw_w: 312.5,
    power_limit_w: 700,
    pci_bus_id: '00000000:1B:00.0',
    graphics_clock_mhz: 1980,
    memory_clock_mhz: 2619,
    pcie_link: 'PCIe 5 x16',
    ecc_errors: 0,
    processes: null,
    compute_processes: null,
    graphics_processes: null,
    mig: null,
    // A driver that does not report them.
    power_enforced_limit_w: null,
    power_default_limit_w: null,
    power_max_limit_w: null,
    recovery_action: null,
  });
  expect({ driverVersion, problems }).toEqual({ driverVersion: '590.48.01', problems: [] });
});

it.each([
  'N/A',
  '[N/A]',
  '[Not Supported]',
  'Not Supported',
  '[Unknown Error]',
  'Unknown Error',
  '[Insufficient Permissions]',
  '[Requested functionality has been deprecated]',
  'Requested functionality has been deprecated',
  '[GPU is lost]',
  'ERR!',
  'nan',
  '',
])('treats %j as absent, not as 0', (nothing) => {
  const row = csvRow({
    'memory.used': nothing,
    'utilization.gpu': nothing,
    'temperature.gpu': nothing,
    'power.draw': nothing,
    'power.limit': nothing,
    'clocks.current.graphics': nothing,
    'clocks.current.memory': nothing,
    'pcie.link.width.current': nothing,
    'ecc.errors.uncorrected.volatile.total': nothing,
  });
  const { devices, problems } = parseGpuCsv(row);
  expect(problems).toEqual([]);
  expect(devices[0]).toMatchObject({
    uuid: H100_A,
    memory_used_mib: null,
    utilization_percent: null,
    temperature_c: null,
    power_draw_w: null,
    power_limit_w: null,
    graphics_clock_mhz: null,
    memory_clock_mhz: null,
    pcie_link: null,
    ecc_errors: null,
  });
});

it('preserves zero and drops negative amounts', () => {
  const row = csvRow({
    'utilization.gpu': '0',
    'memory.used': '0',
    'power.draw': '-0.01',
    'power.limit': '-1.00',
    'temperature.gpu': '-3',
  });
  expect(parseGpuCsv(row).devices[0]).toMatchObject({
    utilization_percent: 0,
    memory_used_mib: 0,
    power_draw_w: null,
    power_limit_w: null,
    temperature_c: -3,
  });
});

it.each([
  ['fewer', csvRow().split(', ').slice(0, -1).join(', '), 16],
  ['more', `${csvRow()}, 7`, 18],
  ['a name with a comma, and therefore more', csvRow({ name: 'NVIDIA H100, PCIe' }), 18],
])('refuses a row with %s cells than fields, and reads the rows beside it', (_, row, cells) => {
  const { devices, rows, problems } = parseGpuCsv(`${row}\n${csvRow({ uuid: H100_B })}\n`);
  expect(devices.map(({ uuid }) => uuid)).toEqual([H100_B]);
  expect(rows).toBe(1);
  expect(problems).toEqual([`${H100_A} has a row of ${cells} values instead of 17`]);
});

it('reads a driver version without the remark behind it', () => {
  const row = csvRow({ driver_version: '610.43.02 [Deprecated; use kmd_version instead]' });
  expect(parseGpuCsv(row).driverVersion).toBe('610.43.02');
  expect(parseGpuCsv(csvRow({ driver_version: 'Deprecated' })).driverVersion).toBeNull();
});

it('ignores an incomplete last line', () => {
  const cut = TWO_CARDS.slice(0, -20);
  expect(parseGpuCsv(cut, false).devices.map((device) => device.uuid)).toEqual([H100_A]);
});

it.each([
  ['a lost card', 'Unable to determine the device handle for GPU 0000:43:00.0: GPU is lost.'],
  ['a message', 'Failed to initialize NVML: Driver/library version mismatch'],
  ['a card without values', csvRow({ uuid: H100_B, name: '[GPU is lost]', 'memory.total': 'N/A' })],
  ['a row without UUID', csvRow({ uuid: '[Unknown Error]' })],
  ['garbage', '\u0000\u0001%%%,,,,,,,,,,,,'],
])('reports %s and returns the healthy card beside it', (_, line) => {
  const { devices, problems } = parseGpuCsv(`${line}\n${csvRow()}\n`);
  expect(devices.map((device) => device.uuid)).toEqual([H100_A]);
  expect(problems).toHaveLength(1);
});

it('separates cards split by MIG from whole cards', () => {
  const split = csvRow({ index: '1', uuid: H100_B, 'mig.mode.current': 'Enabled' });
  const { devices, cards, splitCards, problems } = parseGpuCsv(`${csvRow()}\n${split}\n`);
  expect(devices.map(({ uuid }) => uuid)).toEqual([H100_A]);
  expect(cards.map(({ uuid }) => uuid)).toEqual([H100_A, H100_B]);
  expect(splitCards).toMatchObject([{ index: 1, uuid: H100_B, pciBusId: '00000000:1B:00.0' }]);
  expect(problems).toEqual([]);
});

it('bounds the problems of endless invalid output', () => {
  const { devices, problems } = parseGpuCsv(`${'x'.repeat(5000)}\n`.repeat(1000));
  expect(devices).toEqual([]);
  expect(problems.join('').length).toBeLessThan(2000);
});

it('counts a card that has two rows only once', () => {
  expect(parseGpuCsv(`${csvRow()}\n${csvRow()}\n`).devices).toHaveLength(1);
});

it('truncates an endless name', () => {
  const { devices } = parseGpuCsv(csvRow({ name: 'H'.repeat(MAX_VALUE_CHARS + 1) }));
  expect(devices[0]?.name).toBe('H'.repeat(MAX_VALUE_CHARS));
});
