/** Reads captured drivers, and drivers of other generations that are described by what they lack. */
import { expect, it } from 'vitest';
import {
  type CapturedDriver,
  capturedDriver,
  captureNames,
  captureText,
  createCapturedNvidiaSmi,
  helpOf,
} from '../../../test/fakes/agents/captured-nvidia-smi.ts';
import { createManualClock } from '../../../test/fakes/manual-clock.ts';
import { H100_A, H100_B, xmlDocument } from '../../../test/fixtures/nvidia-smi.ts';
import { createNvidiaDriver } from './driver.ts';
import type { NvidiaSmi } from './nvidia-smi.ts';
import { parseGpuXml } from './xml.ts';

const UUID = 'GPU-00000000-0000-0000-0000-000000000000';
const H100 = 'h100-80gb-hbm3-590.48.01.txt';

function setUp(captured: CapturedDriver) {
  const smi = createCapturedNvidiaSmi(captured);
  return { smi, driver: createNvidiaDriver({ smi, clock: createManualClock() }) };
}

it.each([
  [H100, ['NVIDIA H100 80GB HBM3', 81_559, 700, 'Disabled']],
  ['geforce-rtx-4080-super-595.71.05.txt', ['NVIDIA GeForce RTX 4080 SUPER', 16_376, 320, null]],
  ['h100-mig-590.48.01.txt', ['NVIDIA H100 80GB HBM3', 81_559, 700, 'Enabled']],
  ['h200-mig-610.43.02.txt', ['NVIDIA H200', 143_771, 700, 'Enabled']],
] as const)(
  'reads %s with the fields that this driver lists, in one query',
  async (name, facts) => {
    const { smi, driver } = setUp(capturedDriver(name));
    const { cards, driverVersion } = await driver.read();
    const [model, mib, watts, migMode] = facts;
    expect(cards).toMatchObject([{ uuid: UUID, name: model }]);
    expect(cards[0]?.values.get('memory.total')).toBe(String(mib));
    expect(Number(cards[0]?.values.get('enforced.power.limit'))).toBe(watts);
    expect(cards[0]?.values.get('mig.mode.current') ?? null).toBe(migMode);
    expect(cards[0]?.values.get('gpu_recovery_action')).toBe('None');
    expect(name).toContain(driverVersion);
    expect(smi.queries).toHaveLength(1);
    await driver.read();
    expect(smi.queries).toHaveLength(2);
  },
);

/** Fields by the driver that introduced them. */
const NEWER: readonly (readonly [number, RegExp])[] = [
  [450, /^mig\.|^remapped_rows/],
  [510, /^compute_cap|^memory\.reserved|^gsp\.|^pcie\.link\.gen\.(?:gpu|host)/],
  [530, /^power\.draw\.|^module\.|^fabric|^c2c|^protected_memory|histogram/],
  [535, /^clocks_event_reasons|^temperature\.gpu\.tlimit|^utilization\.(?!gpu|memory)/],
  [570, /^gpu_recovery_action|^platform|sram\.|^kmd|_inactive|^dramEncryption|^edpp/],
  [600, /^gpu\.base|^power_smoothing|^bbx/],
];

/** Returns the captured H100 with an older driver. */
function olderDriver(version: string): CapturedDriver {
  const release = Number.parseInt(version, 10);
  const captured = capturedDriver(H100);
  const known = [...captured.values].flatMap(([field, value]): [string, string][] => {
    const since = NEWER.find(([, pattern]) => pattern.test(field))?.[0] ?? 0;
    const renamed = field.replace('clocks_event_reasons.', 'clocks_throttle_reasons.');
    if (since > release) return renamed === field ? [] : [[renamed, value]];
    return [[field, value]];
  });
  const values = new Map(known).set('driver_version', version);
  return { ...captured, values, help: helpOf([...values.keys()]) };
}

it.each(['418.226.00', '470.256.02', '515.105.01', '535.183.01', '580.95.05'])(
  'reads driver %s, whether or not it lists its fields',
  async (version) => {
    const old = olderDriver(version);
    const [listing, silent] = [setUp(old), setUp({ ...old, help: null })];
    const readings = [await listing.driver.read(), await silent.driver.read()];
    // A reading is rejected at most a dozen times. All have what leases need; later ones have the other fields too.
    while (silent.smi.queries.at(-1)?.includes('pstate') !== true) await silent.driver.read();
    readings.push(await silent.driver.read());
    for (const reading of readings) {
      expect(reading).toMatchObject({ error: null, driverVersion: version });
      expect(reading.devices).toMatchObject([
        { uuid: UUID, memory_total_mib: 81_559, power_limit_w: 700 },
      ]);
    }
    expect(listing.smi.queries).toHaveLength(1);
    const [listed, , learnt] = readings.map(({ cards }) => cards[0]?.values);
    expect(learnt).toEqual(listed);
    expect(learnt?.get('pstate')).toBe('P0');
    // The fields are remembered.
    const count = silent.smi.queries.length;
    await silent.driver.read();
    expect(silent.smi.queries).toHaveLength(count + 1);
  },
);

it('reads all fields of leases from a driver that rejects a field without its name', async () => {
  const { smi } = setUp({ ...olderDriver('580.95.05'), help: null });
  const unnamed: NvidiaSmi = {
    async run(args) {
      const output = await smi.run(args);
      return { ...output, stdout: output.stdout.replace(/Field "[^"]+" /, 'One ') };
    },
  };
  const driver = createNvidiaDriver({ smi: unnamed, clock: createManualClock() });
  const { devices, error } = await driver.read();
  expect(error).toBeNull();
  expect(devices).toMatchObject([{ uuid: UUID, power_limit_w: 700, ecc_errors: null }]);
});

it.each([
  ['12.4', '12.4'],
  ['12.4 (driver)', '12.4'],
  ['13.3 [Deprecated; will be removed in CUDA 14.0. Use CUDA UMD Version instead]', '13.3'],
  ['N/A', null],
  ['Not Supported', null],
  ['Deprecated, see "CUDA UMD version" instead', null],
  ['', null],
])('reads the CUDA version %j as %j', async (printed, version) => {
  const head = `<driver_version>610.43.02 [Deprecated; use KMD Version]</driver_version>
    <cuda_version>${printed}</cuda_version>`;
  const xml = await parseGpuXml(xmlDocument({ head }));
  expect(xml).toMatchObject({ cudaVersion: version, driverVersion: '610.43.02' });
  const newer = `${head}<kmd_version>610.43.03</kmd_version><cuda_umd_version>13.9</cuda_umd_version>`;
  expect(await parseGpuXml(xmlDocument({ head: newer }))).toMatchObject({
    cudaVersion: '13.9',
    driverVersion: '610.43.03',
  });
});

/** Numbers of compute and graphics processes; a process of type C+G is of both kinds. */
it.each([
  ['tesla-t4.xml', [1, 1]],
  ['rtx-3080-v12.xml', [0, 5]],
  ['rtx-4000-sff-ada-v13.xml', [2, 3]],
  ['a100-sxm4-v12.xml', [0, 0]],
  ['gtx-1070-ti.xml', [0, 0]],
] as const)('separates the compute and the graphics processes of %s', async (name, counts) => {
  const xml = await parseGpuXml(captureText(name));
  const processes = xml?.gpus[0]?.processes ?? [];
  const [compute, graphics] = counts;
  expect(processes.filter(({ computes }) => computes)).toHaveLength(compute);
  expect(processes.filter(({ draws }) => draws)).toHaveLength(graphics);
});

it('counts both kinds of processes on a card', async () => {
  const { driver } = setUp({
    ...olderDriver('580.95.05'),
    xml: withUuid(captureText('tesla-t4.xml')),
  });
  await driver.health();
  expect((await driver.read()).devices).toMatchObject([
    { processes: 2, compute_processes: 1, graphics_processes: 1 },
  ]);
});

function withUuid(xml: string): string {
  return xml.replace(/<uuid>[^<]*<\/uuid>/, `<uuid>${UUID}</uuid>`);
}

it.each([
  // Driver 610 has a section for each limit within the section.
  [
    '<gpu_ceiling_power_limit><default_power_limit>650.00 W</default_power_limit></gpu_ceiling_power_limit>',
    650,
  ],
  ['<default_power_limit>N/A</default_power_limit>', null],
])('takes limits that the query lacks from the document: %s', async (limits, usual) => {
  const captured = capturedDriver(H100);
  const values = new Map(captured.values).set('power.default_limit', '[N/A]');
  values.set('power.limit', '[N/A]').set('enforced.power.limit', '300.00 W');
  const xml = withUuid(xmlDocument({ uuids: [H100_A] })).replace(
    /<gpu_power_readings>.*?<\/gpu_power_readings>/s,
    `<gpu_power_readings>${limits}<max_power_limit>700.00 W</max_power_limit></gpu_power_readings>`,
  );
  const { driver } = setUp({ ...captured, values, xml });
  expect((await driver.read()).devices).toMatchObject([
    {
      power_limit_w: 300,
      power_enforced_limit_w: 300,
      power_default_limit_w: usual,
      power_max_limit_w: 700,
    },
  ]);
});

it('reads the document card by card if that of all cards is too long', async () => {
  const uuids = [H100_A, H100_B];
  const list = uuids.map((uuid, index) => `GPU ${index}: NVIDIA H100 (UUID: ${uuid})\n`).join('');
  const health = { [H100_B]: { recovery: 'GPU Reset' } };
  const problem = 'nvidia-smi printed more than 1048576 bytes';
  const smi: NvidiaSmi = {
    async run(args) {
      const card = args[3];
      if (args[0] === '-q' && card === undefined) {
        return { stdout: '<nvidia_smi_log>', complete: false, problem, exitCode: null };
      }
      const stdout = args[0] === '-q' ? xmlDocument({ uuids: [card ?? ''], health }) : list;
      return { stdout, complete: true, problem: null, exitCode: 0 };
    },
  };
  const driver = createNvidiaDriver({ smi, clock: createManualClock() });
  const reading = await driver.health();
  expect(reading?.cards.map(({ uuid }) => uuid)).toEqual(uuids);
  expect(reading?.cards[1]?.fault).toEqual({
    reason: 'RecoveryActionNeeded',
    message: expect.stringMatching(/requests: GPU Reset; remedy: .*nvidia-smi --gpu-reset/),
  });
});

const SHARED_LIST = `GPU 0: NVIDIA H100 80GB HBM3 (UUID: ${UUID})
  MIG 1c.3g.40gb  Device  0: (UUID: MIG-51a2b3c4-0010-4aaa-8bbb-000000000000)
  MIG 1c.3g.40gb  Device  1: (UUID: MIG-51a2b3c4-0011-4aaa-8bbb-000000000001)
  MIG 1g.10gb     Device  2: (UUID: MIG-51a2b3c4-0012-4aaa-8bbb-000000000002)
`;
/** Index, GPU instance and compute instance of these devices. */
const SHARED_PLACES = [
  [0, 2, 0],
  [1, 2, 1],
  [2, 9, 0],
];

it('does not offer MIG devices that share the memory of their GPU instance', async () => {
  const devices = SHARED_PLACES.map(
    ([index, instance, compute]) => `<mig_device><index>${index}</index>
      <gpu_instance_id>${instance}</gpu_instance_id><compute_instance_id>${compute}</compute_instance_id>
      <shared_fb_memory_usage><total>40448 MiB</total><reserved>1 MiB</reserved><used>26 MiB</used><free>40421 MiB</free></shared_fb_memory_usage></mig_device>`,
  );
  const xml = withUuid(xmlDocument({ uuids: [H100_A] })).replace(
    '<mig_devices>None</mig_devices>',
    `<mig_devices>${devices.join('')}</mig_devices>`,
  );
  const { driver } = setUp({ ...capturedDriver('h100-mig-590.48.01.txt'), list: SHARED_LIST, xml });
  const reasons = (await driver.health())?.migDevices.map(({ fault }) => fault?.reason ?? null);
  expect(reasons).toEqual(['MemoryShared', 'MemoryShared', null]);
  const { parts } = await driver.read();
  expect(parts[0]).toMatchObject({ gpuInstance: 2, memoryTotalMib: 40_448, memoryFreeMib: 40_421 });
});

it('has captures of every form', () => {
  expect(captureNames('.txt')).toHaveLength(4);
  expect(captureNames('.xml')).toHaveLength(7);
});
