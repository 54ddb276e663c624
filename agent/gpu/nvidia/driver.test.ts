import { afterEach, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import {
  type CapturedDriver,
  capturedDriver,
  createCapturedNvidiaSmi,
} from '../../../test/fakes/agents/captured-nvidia-smi.ts';
import { createFakeNvidiaSmi } from '../../../test/fakes/agents/fake-nvidia-smi.ts';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import {
  EVERYTHING,
  FAULTS,
  HEALTHY,
  MAX_ERROR_CHARS,
} from '../../../test/fixtures/nvidia-faults.ts';
import {
  csvRow,
  FIELD_LIST,
  H100_A,
  H100_B,
  MIG_1G,
  MIG_1G_B,
  MIG_2G,
  MIG_3G,
  MIG_LIST,
  TWO_CARDS,
  xmlDocument,
} from '../../../test/fixtures/nvidia-smi.ts';
import { EIGHT_NVSWITCH } from '../../../test/fixtures/nvidia-topology.ts';
import { createNvidiaDriver } from './driver.ts';
import { createNvidiaSmi, type NvidiaSmi } from './nvidia-smi.ts';

const TIMEOUT_MS = 300;
const TEXTS = { csv: TWO_CARDS, xml: xmlDocument() };

const fakes: { remove(): void }[] = [];
afterEach(() => {
  for (const fake of fakes.splice(0)) fake.remove();
});

function setUp() {
  const fake = createFakeNvidiaSmi();
  fakes.push(fake);
  const smi = createNvidiaSmi({ clock: systemClock, runCommand, env: fake.env });
  return { fake, smi, driver: createNvidiaDriver({ smi, clock: systemClock }) };
}

const uuidsOf = (reading: { devices: readonly { uuid: string }[] }) =>
  reading.devices.map((device) => device.uuid);

it('reads cards, driver and CUDA version', async () => {
  const { fake, driver } = setUp();
  fake.become(HEALTHY, TEXTS);
  const reading = await driver.read();
  expect(uuidsOf(reading)).toEqual([H100_A, H100_B]);
  expect(reading).toMatchObject({
    driverVersion: '590.48.01',
    cudaVersion: '13.1',
    error: null,
    ageMs: 0,
  });
});

it.each(FAULTS)(
  'reads the readable cards when nvidia-smi returns $name',
  async ({ script, csv, uuids, error }) => {
    const { fake, driver } = setUp();
    fake.become(script, csv === undefined ? TEXTS : { ...TEXTS, csv });
    const reading = await driver.read();
    expect(uuidsOf(reading)).toEqual(uuids);
    if (error === null) expect(reading.error).toBeNull();
    else expect(reading.error).toMatch(error);
    expect(reading.error?.length ?? 0).toBeLessThan(MAX_ERROR_CHARS);
  },
);

it('kills a hanging nvidia-smi, and returns the last good values', async () => {
  // Only the hanging run has the short deadline, which a busy computer may exceed.
  const { fake, smi: patient } = setUp();
  let smi: NvidiaSmi = patient;
  const driver = createNvidiaDriver({ smi: { run: (args) => smi.run(args) }, clock: systemClock });
  fake.become(HEALTHY, TEXTS);
  await driver.read();
  fake.become('exec sleep 600');
  const { env } = fake;
  smi = createNvidiaSmi({ clock: systemClock, runCommand, env, timeoutMs: TIMEOUT_MS });
  const reading = await driver.read();
  expect(uuidsOf(reading)).toEqual([H100_A, H100_B]);
  expect(reading.error).toMatch(/did not end within 300 ms/);
  expect(reading.ageMs).toBeGreaterThanOrEqual(TIMEOUT_MS - 1);
  expect(reading).toMatchObject({ driverVersion: '590.48.01', cudaVersion: '13.1' });
});

it('reports a missing nvidia-smi differently from a missing card', async () => {
  const { fake, driver } = setUp();
  expect((await driver.read()).error).toMatch(/^nvidia-smi could not be started/);
  fake.become(HEALTHY, TEXTS);
  await driver.read();
  fake.become('echo "No devices were found"; exit 6');
  expect(await driver.read()).toMatchObject({
    devices: [],
    ageMs: 0,
    error: 'No devices were found',
  });
});

it('counts processes from the XML document of the health check', async () => {
  const { fake, driver } = setUp();
  const processes = [{ pid: 7 }, { pid: 8 }];
  fake.become(EVERYTHING, { ...TEXTS, xml: xmlDocument({ processes }), topo: '' });
  await driver.health();
  expect((await driver.read()).devices[0]).toMatchObject({ uuid: H100_A, processes: 2 });
});

it('omits values whose fields a driver does not support', async () => {
  const { fake, driver } = setUp();
  const refusal = `echo 'Field "clocks.current.graphics" is not a valid field to query.'; exit 2`;
  const known = csvRow().split(', ').toSpliced(12, 1).join(', ');
  const list = '--help*) cat "$HERE/help";;';
  fake.become(
    `case "$*" in ${list} *clocks.current.graphics*) ${refusal};; *) cat "$HERE/csv";; esac`,
    {
      csv: known,
    },
  );
  const reading = await driver.read();
  expect(reading.error).toBeNull();
  expect(reading.devices).toMatchObject([
    { uuid: H100_A, utilization_percent: 37, graphics_clock_mhz: null, memory_clock_mhz: 2_619 },
  ]);
});

it('queries every field again after a driver update', async () => {
  const captured = capturedDriver('h100-80gb-hbm3-590.48.01.txt');
  const without = (name: string) =>
    new Map([...captured.values].filter(([field]) => field !== name));
  const old: CapturedDriver = { ...captured, values: without('clocks.current.graphics') };
  const updated = { ...captured, values: new Map(captured.values).set('driver_version', '600.1') };
  let smi: NvidiaSmi = createCapturedNvidiaSmi(old);
  const driver = createNvidiaDriver({ smi: { run: (args) => smi.run(args) }, clock: systemClock });
  const readings = [await driver.read(), await driver.read()];
  smi = createCapturedNvidiaSmi(updated);
  // The next query is still the short one; its output contains the new driver version.
  readings.push(await driver.read(), await driver.read());
  const clocks = readings.map(({ devices }) => devices[0]?.graphics_clock_mhz);
  expect(clocks).toEqual([null, null, null, 1_980]);
});

it('stops offering a card that was split by MIG or lost since the last reading', async () => {
  const { fake, driver } = setUp();
  fake.become(HEALTHY, TEXTS);
  await driver.read();
  const lost = csvRow({ uuid: H100_B, name: '[GPU is lost]', 'memory.total': '[GPU is lost]' });
  fake.become(HEALTHY, {
    ...TEXTS,
    csv: `${csvRow({ 'mig.mode.current': 'Enabled' })}\n${lost}\n`,
  });
  const reading = await driver.read();
  expect(reading).toMatchObject({ devices: [], driverVersion: '590.48.01', ageMs: 0 });
  expect(reading.error).toMatch(/neither name nor memory.*in MIG mode and has no MIG devices/);
});

it('offers the MIG devices of a split card, never the card', async () => {
  const { fake, driver } = setUp();
  const csv = `${csvRow({ 'mig.mode.current': 'Enabled' })}\n${csvRow({ index: '1', uuid: H100_B })}\n`;
  const xml = xmlDocument({ mig: [H100_A] });
  fake.become(EVERYTHING, { csv, xml, list: MIG_LIST, topo: EIGHT_NVSWITCH });
  const reading = await driver.read();
  expect(uuidsOf(reading)).toEqual([H100_B, MIG_3G, MIG_2G, MIG_1G, MIG_1G_B]);
  expect(reading).toMatchObject({ error: null, ageMs: 0 });
  expect(reading.devices[1]).toEqual({
    index: 0,
    uuid: MIG_3G,
    name: 'NVIDIA H100 80GB HBM3 MIG 3g.40gb',
    memory_total_mib: 40_448,
    memory_used_mib: 26,
    utilization_percent: null,
    temperature_c: null,
    power_draw_w: null,
    power_limit_w: null,
    power_enforced_limit_w: null,
    power_default_limit_w: null,
    power_max_limit_w: null,
    pci_bus_id: '00000000:1B:00.0',
    graphics_clock_mhz: null,
    memory_clock_mhz: null,
    pcie_link: null,
    ecc_errors: null,
    recovery_action: null,
    processes: null,
    compute_processes: null,
    graphics_processes: null,
    mig: { profile: '3g.40gb', parent_uuid: H100_A },
  });
  expect(reading.topology?.gpus.map(({ uuid }) => uuid)).toEqual([H100_A, H100_B]);
});

it('matches processes to MIG devices by instance id, because nvidia-smi lists them under the card', async () => {
  const { fake, driver } = setUp();
  const texts = { csv: csvRow({ 'mig.mode.current': 'Enabled' }), list: MIG_LIST, topo: '' };
  const processes = [{ pid: 77, gpuInstance: 3 }];
  fake.become(EVERYTHING, {
    ...texts,
    xml: xmlDocument({ uuids: [H100_A], mig: [H100_A], processes }),
  });
  expect(await driver.isFree(MIG_2G)).toBe(false);
  expect(await driver.isFree(MIG_3G)).toBe(true);
  // A device that is not listed does not count as free.
  await expect(driver.isFree('MIG-51a2b3c4-9999-4aaa-8bbb-000000000000')).rejects.toThrow(
    /does not list/,
  );
  fake.become(EVERYTHING, { ...texts, xml: 'NVIDIA-SMI has failed' });
  await expect(driver.isFree(MIG_3G)).rejects.toThrow(/does not list/);
});

it('reports the faults of each card, and null while the driver does not answer', async () => {
  const { fake, driver } = setUp();
  const health = { [H100_B]: { remapPending: 'Yes' } };
  fake.become(EVERYTHING, { ...TEXTS, xml: xmlDocument({ health }) });
  expect((await driver.health())?.cards).toMatchObject([
    { uuid: H100_A, pciBusId: '00000000:1B:00.0', fault: null },
    { uuid: H100_B, fault: { reason: 'RowRemapPending' } },
  ]);
  for (const xml of ['', 'Driver/library version mismatch', xmlDocument({ uuids: [] })]) {
    fake.become(EVERYTHING, { ...TEXTS, xml });
    expect(await driver.health()).toBeNull();
  }
});

it('returns old values for a minute, then only the identity', async () => {
  const clock = createManualClock();
  let stdout = TWO_CARDS;
  const texts: Record<string, string> = { '-q': xmlDocument(), '--help-query-gpu': FIELD_LIST };
  const smi = {
    run: (args: readonly string[]) =>
      Promise.resolve({
        stdout: texts[args[0] ?? ''] ?? stdout,
        complete: true,
        problem: null,
        exitCode: 0,
      }),
  };
  const driver = createNvidiaDriver({ smi, clock });
  await driver.read();
  stdout = '';
  await clock.advance(60_000);
  expect((await driver.read()).devices[0]).toMatchObject({ utilization_percent: 37 });
  await clock.advance(1);
  expect((await driver.read()).devices[0]).toMatchObject({
    uuid: H100_A,
    memory_total_mib: 81_559,
    memory_used_mib: null,
    utilization_percent: null,
  });
});

it('drops a field that the driver rejects, and uses its older name if there is one', async () => {
  const captured = capturedDriver('h100-80gb-hbm3-590.48.01.txt');
  const renamed = [...captured.values].flatMap(([field, value]): [string, string][] => {
    if (field === 'gpu_recovery_action') return [];
    return [[field.replace('clocks_event_reasons.', 'clocks_throttle_reasons.'), value]];
  });
  const values = new Map(renamed).set('power.draw', '[N/A]');
  // Without a list of the fields, only the rejections show which ones the driver has.
  const smi = createCapturedNvidiaSmi({ ...captured, values, help: null });
  const driver = createNvidiaDriver({ smi, clock: createManualClock() });
  // Launches and metric collections also read concurrently.
  await Promise.all([driver.read(), driver.read()]);
  while (smi.queries.at(-1)?.includes('pstate') !== true) await driver.read();
  const [reading, other] = await Promise.all([driver.read(), driver.read()]);
  const read = reading?.cards[0]?.values;
  expect(read?.get('clocks_throttle_reasons.active')).toBe('0x0000000000000000');
  expect(read?.get('pstate')).toBe('P0');
  expect([...(read?.keys() ?? [])]).not.toContain('power.draw');
  expect(other?.cards[0]?.values.size).toBe(read?.size);
  expect(smi.queries.at(-1)).not.toContain('gpu_recovery_action');
  const count = smi.queries.length;
  await driver.read();
  expect(smi.queries).toHaveLength(count + 1);
});

it('reads sixteen cards with all their values', async () => {
  const { fake, driver } = setUp();
  const uuidOf = (index: number) => `GPU-51a2b3c4-00${index + 10}-4aaa-8bbb-00000000000a`;
  const rows = Array.from({ length: 16 }, (_, index) =>
    csvRow({ index: String(index), uuid: uuidOf(index) }),
  );
  fake.become(HEALTHY, { ...TEXTS, csv: `${rows.join('\n')}\n` });
  const reading = await driver.read();
  expect(reading.cards).toHaveLength(16);
  expect(reading.cards[15]).toMatchObject({ index: 15, uuid: uuidOf(15) });
  expect(reading.cards[15]?.values.get('utilization.gpu')).toBe('37');
  expect(reading).toMatchObject({ error: null, exitCode: 0 });
});
