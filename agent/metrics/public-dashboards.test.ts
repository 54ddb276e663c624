/**
 * Checks that the agent exports the series of widely used public dashboards, with the labels by which the dashboards
 * select and join. The dashboards are Grafana's 14574 and 25547 (nvidia_gpu_exporter), 12239 (DCGM exporter), 14282 and
 * 19792 (cAdvisor).
 */
import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { type Family, registerFamily } from '#shared/telemetry/family.ts';
import {
  type CapturedDriver,
  capturedDriver,
  captureNames,
  createCapturedNvidiaSmi,
} from '../../test/fakes/agents/captured-nvidia-smi.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import type { GpuCard, GpuReading } from '../gpu/gpu-driver.ts';
import { createNvidiaDriver } from '../gpu/nvidia/driver.ts';
import { ALL_FIELDS } from '../gpu/nvidia/fields.ts';
import { dcgmFamilies } from './dcgm-families.ts';
import { type GpuFacts, gpuFamilies, gpuPrivateFamilies } from './gpu-families.ts';
import { podFamilies } from './pod-families.ts';

const UUID = 'GPU-51a2b3c4-0001-4aaa-8bbb-00000000000a';
const CARD: GpuCard = {
  index: 0,
  uuid: UUID,
  name: 'NVIDIA H100',
  pciBusId: '00000000:3B:00.0',
  values: new Map(ALL_FIELDS.map((field) => [field, '1'])),
};
const READING: GpuReading = {
  driverVersion: '560.35.03',
  cudaVersion: '12.6',
  devices: [],
  cards: [CARD],
  parts: [
    {
      uuid: 'MIG-1',
      parentUuid: UUID,
      profile: '1g.10gb',
      gpuInstance: 7,
      computeInstance: 0,
      memoryTotalMib: 2,
      memoryUsedMib: 1,
      memoryReservedMib: 0,
      memoryFreeMib: 1,
    },
  ],
  processes: [{ uuid: UUID, pid: 12, memoryMib: 1, computes: true, draws: false }],
  topology: null,
  error: null,
  ageMs: 0,
  exitCode: 0,
};
const FACTS: GpuFacts = {
  reading: () => READING,
  xids: () => [{ uuid: UUID, code: 79, count: 1, lastMs: 1 }],
  failures: () => 0,
  lastAttempt: () => READING,
};
const POD_FACTS: Parameters<typeof podFamilies>[0] = {
  pods: () => [
    {
      podId: 'p',
      containerId: 'c',
      containerName: 'n',
      image: 'i',
      imageDigest: null,
      template: null,
      memoryLimitBytes: 1,
      runningSinceMs: 1,
      seenMs: 1,
      writtenBytes: 1,
      oomEvents: 0,
      usage: {
        cpuNanos: 1,
        memoryBytes: 1,
        memoryWithFilesBytes: 1,
        residentBytes: 1,
        cacheBytes: 1,
        tasks: 1,
        network: { receivedBytes: 1, sentBytes: 1 },
        blockIo: { readBytes: 1, writtenBytes: 1 },
      },
    },
  ],
  leases: () => [],
  backups: () => new Map(),
  work: () => [],
};

const THROTTLES = ['sw_power_cap', 'sw_thermal_slowdown', 'hw_thermal_slowdown']
  .concat('hw_power_brake_slowdown', 'gpu_idle', 'applications_clocks_setting', 'sync_boost')
  .map((reason) => `clocks_event_reasons_${reason}`);
/** Names after `nvidia_smi_`; dashboards select all of them by `uuid`. */
const NVIDIA = [
  ...['index', 'pstate', 'compute_mode', 'fabric_state', 'gpu_recovery_action'],
  ...['utilization_gpu_ratio', 'utilization_memory_ratio', 'memory_used_bytes'],
  ...['memory_total_bytes', 'temperature_gpu', 'fan_speed_ratio', 'power_draw_watts'],
  ...['power_limit_watts', 'power_default_limit_watts', 'enforced_power_limit_watts'],
  ...['clocks_current_graphics_clock_hz', 'clocks_current_sm_clock_hz'],
  ...['clocks_current_memory_clock_hz', 'clocks_current_video_clock_hz'],
  ...['clocks_max_graphics_clock_hz', 'clocks_max_memory_clock_hz'],
  ...['ecc_errors_uncorrected_aggregate_total', 'xid_errors_total', 'xid_last_timestamp_seconds'],
  ...['compute_app_info', 'compute_app_used_memory_bytes', ...THROTTLES],
];
/** Available only through NVML, which the agent does not use; the exporter itself also needs it. */
const NOT_BY_NVIDIA_SMI = [
  ...['energy_joules_total', 'pcie_throughput_tx_bytes_per_second'],
  ...['pcie_throughput_rx_bytes_per_second', 'mig_sm_activity_ratio', 'mig_tensor_activity_ratio'],
];
const DCGM = ['GPU_TEMP', 'POWER_USAGE', 'SM_CLOCK', 'GPU_UTIL', 'FB_USED', 'FB_FREE'];
const CADVISOR = [
  ...['cpu_usage_seconds_total', 'memory_usage_bytes', 'memory_working_set_bytes', 'memory_rss'],
  ...['memory_cache', 'network_receive_bytes_total', 'network_transmit_bytes_total'],
  ...['fs_reads_bytes_total', 'fs_writes_bytes_total', 'fs_usage_bytes', 'start_time_seconds'],
  ...['last_seen', 'spec_memory_limit_bytes', 'oom_events_total', 'threads'],
];

/** Returns the labels of each series, by name. */
async function seriesOf(families: readonly Family[]): Promise<Map<string, string>> {
  const registry = new Registry();
  for (const family of families) registerFamily(registry, family);
  const lines = (await registry.metrics()).split('\n');
  return new Map(
    lines.flatMap((line) => {
      const [, name, labels] = /^(\w+)(\{.*\})? \S+$/.exec(line) ?? [];
      return name === undefined ? [] : [[name, labels ?? '']];
    }),
  );
}

it('exports each series of nvidia_gpu_exporter that its dashboards use', async () => {
  const series = await seriesOf([...gpuFamilies(FACTS), ...gpuPrivateFamilies(FACTS)]);
  for (const name of NVIDIA) {
    expect([name, series.get(`nvidia_smi_${name}`)]).toEqual([
      name,
      expect.stringContaining('uuid="51a2b3c4-0001-4aaa-8bbb-00000000000a"'),
    ]);
  }
  expect(series.get('nvidia_smi_compute_apps_last_collect_success')).toBe('');
  const info = series.get('nvidia_smi_gpu_info');
  const labels = ['index', 'name', 'driver_version', 'cuda_version', 'vbios_version'].concat(
    'compute_cap',
    'driver_model_current',
    'driver_model_pending',
    'pci_bus_id',
  );
  for (const label of labels) expect(info).toMatch(new RegExp(`[{,]${label}="[^"]`));
  // Dashboards join a MIG device's memory with its profile by instance id.
  for (const name of ['mig_info', 'mig_memory_used_bytes']) {
    expect(series.get(`nvidia_smi_${name}`)).toContain('gpu_instance_id="7"');
  }
  expect(NOT_BY_NVIDIA_SMI.filter((name) => series.has(`nvidia_smi_${name}`))).toEqual([]);
});

/** Suffixes that the exporter derives from the unit in the header. */
const SUFFIXES: Record<string, string> = {
  '[MiB]': '_bytes',
  '[%]': '_ratio',
  '[MHz]': '_clock_hz',
  '[W]': '_watts',
  '[us]': '_seconds',
  '[ms]': '_seconds',
  '[seconds]': '_seconds',
};
/** Values that the exporter exports: numbers, hexadecimal numbers, and the words of enumerations. */
const EXPORTED =
  /^(?:-?\d+(?:\.\d+)?(?: \S+)?|0x[0-9A-F]+|Enabled|Disabled|Yes|No|Active|Not Active|P\d+|Default|Completed)$/;

/** Names of the series that the exporter derives from the fields and units of a captured driver. */
function exporterSeries({ values, units }: CapturedDriver): string[] {
  return [...values].flatMap(([field, value]) => {
    if (!EXPORTED.test(value) && !(field === 'gpu_recovery_action' && value === 'None')) return [];
    const words = field
      .replaceAll('.', '_')
      .replace(/([a-z])([A-Z])/g, '$1_$2')
      .toLowerCase();
    return [`nvidia_smi_${words}${SUFFIXES[units.get(field) ?? ''] ?? ''}`];
  });
}

it.each(captureNames('.txt'))(
  'exports each number that nvidia_gpu_exporter exports for %s',
  async (name) => {
    const captured = capturedDriver(name);
    const smi = createCapturedNvidiaSmi(captured);
    const reading = await createNvidiaDriver({ smi, clock: createManualClock() }).read();
    const facts = { ...FACTS, reading: () => reading };
    const ours = await seriesOf([...gpuFamilies(facts), ...gpuPrivateFamilies(facts)]);
    const theirs = exporterSeries(captured);
    expect(theirs.length).toBeGreaterThan(90);
    expect(theirs.filter((series) => !ours.has(series))).toEqual([]);
    // The serial number identifies the board, so the public listener does not serve it.
    expect((await seriesOf(gpuFamilies(facts))).has('nvidia_smi_serial')).toBe(false);
  },
);

it('exports the memory of a GPU instance once, however many compute instances share it', async () => {
  const part = (uuid: string, computeInstance: number) => ({
    uuid,
    parentUuid: UUID,
    profile: '1c.3g.40gb',
    gpuInstance: 2,
    computeInstance,
    memoryTotalMib: 40_448,
    memoryUsedMib: 26,
    memoryReservedMib: 1,
    memoryFreeMib: 40_421,
  });
  const reading = { ...READING, parts: [part('MIG-1', 0), part('MIG-2', 1)] };
  const facts = { ...FACTS, reading: () => reading };
  const families = [...gpuFamilies(facts), ...dcgmFamilies(facts, 'one')];
  const samplesOf = (name: string) => families.find((each) => each.name === name)?.samples() ?? [];
  expect(samplesOf('nvidia_smi_mig_info')).toHaveLength(2);
  const labels = { uuid: UUID.slice(4), mig_uuid: '', gpu_instance_id: 2 };
  expect(samplesOf('nvidia_smi_mig_memory_total_bytes')).toEqual([
    { labels, value: 40_448 * 2 ** 20 },
  ]);
  const [, ...instances] = samplesOf('DCGM_FI_DEV_FB_USED');
  expect(instances).toMatchObject([
    { labels: { GPU_I_PROFILE: '3g.40gb', GPU_I_ID: 2 }, value: 26 },
  ]);
});

it('exports compute and graphics processes separately', async () => {
  const process = { uuid: UUID, memoryMib: 1 };
  const reading: GpuReading = {
    ...READING,
    processes: [
      { ...process, pid: 1, computes: true, draws: false },
      { ...process, pid: 2, computes: false, draws: true },
      { ...process, pid: 3, computes: true, draws: true },
    ],
  };
  const families = gpuPrivateFamilies({ ...FACTS, reading: () => reading });
  const samplesOf = (name: string) => families.find((each) => each.name === name)?.samples() ?? [];
  const pids = (name: string) => samplesOf(name).map(({ labels }) => labels['pid']);
  expect(pids('nvidia_smi_compute_app_info')).toEqual([1, 3]);
  expect(pids('nvidia_smi_graphics_app_info')).toEqual([2, 3]);
  expect(samplesOf('nvidia_smi_compute_apps')).toMatchObject([{ value: 2 }]);
  expect(samplesOf('nvidia_smi_graphics_apps')).toMatchObject([{ value: 2 }]);
});

it.each([
  ['None', 0],
  ['GPU Reset', 1],
  ['Node Reboot', 2],
  ['Drain P2P', 3],
  ['Drain and Reset', 4],
  ['Something new', null],
])('exports the recovery action %s as %s', async (action, value) => {
  const card = { ...CARD, values: new Map([['gpu_recovery_action', action]]) };
  const facts = { ...FACTS, reading: () => ({ ...READING, cards: [card] }) };
  const family = gpuFamilies(facts).find(({ name }) => name === 'nvidia_smi_gpu_recovery_action');
  expect(family?.samples().map((sample) => sample.value)).toEqual(value === null ? [] : [value]);
});

it('exports no negative power, clock or memory', () => {
  const printed = { 'power.draw': '-0.50', 'memory.used': '-1', 'temperature.gpu': '-3' };
  const card = { ...CARD, values: new Map(Object.entries(printed)) };
  const facts = { ...FACTS, reading: () => ({ ...READING, cards: [card] }) };
  const found = gpuFamilies(facts).filter(
    ({ name, samples }) =>
      /power_draw|memory_used|temperature_gpu$/.test(name) &&
      samples().some(({ value }) => value < 0),
  );
  expect(found.map(({ name }) => name)).toEqual(['nvidia_smi_temperature_gpu']);
});

it("exports each series of DCGM's dashboard that nvidia-smi provides, with the labels that the dashboard selects by", async () => {
  const series = await seriesOf(dcgmFamilies(FACTS, 'one'));
  for (const name of DCGM) {
    expect(series.get(`DCGM_FI_DEV_${name}`)).toContain('Hostname="one"');
    expect(series.get(`DCGM_FI_DEV_${name}`)).toContain('gpu="0"');
  }
  expect([...series.keys()].filter((name) => name.startsWith('DCGM_FI_PROF_'))).toEqual([]);
});

it("exports each series of cAdvisor that dashboards use, by the container's name", async () => {
  const series = await seriesOf(podFamilies(POD_FACTS));
  for (const name of CADVISOR) {
    expect([name, series.get(`container_${name}`)]).toEqual([
      name,
      '{id="/docker/c",name="n",image="i",pod_id="p"}',
    ]);
  }
});
