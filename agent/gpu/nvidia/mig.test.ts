import { expect, it } from 'vitest';
import { capturedDriver, captureNames } from '../../../test/fakes/agents/captured-nvidia-smi.ts';
import { H100_A, H100_B, MIG_1G, MIG_3G, MIG_LIST } from '../../../test/fixtures/nvidia-smi.ts';
import { listedUuids, parseGpuList } from './mig.ts';

it('returns each card with its MIG devices', () => {
  const text = `${MIG_LIST}GPU 1: NVIDIA H100 80GB HBM3 (UUID: ${H100_B})\n`;
  const [split, whole] = parseGpuList(text);
  expect(split?.uuid).toBe(H100_A);
  expect(split?.migDevices.map(({ profile, index }) => `${index} ${profile}`)).toEqual([
    ...['0 3g.40gb', '1 2g.20gb', '2 1g.10gb', '3 1g.10gb'],
  ]);
  expect(whole).toEqual({ uuid: H100_B, migDevices: [] });
  expect(listedUuids(text)).toContain(MIG_3G);
  expect(listedUuids(text).size).toBe(6);
});

it('parses profiles with media engines and compute slices', () => {
  const line = (profile: string) => `  MIG ${profile} Device  0: (UUID: ${MIG_1G})`;
  for (const profile of ['1g.10gb+me', '1c.3g.40gb', '7g.80gb']) {
    const [gpu] = parseGpuList(`GPU 0: X (UUID: ${H100_A})\n${line(profile)}\n`);
    expect(gpu?.migDevices).toMatchObject([{ profile, uuid: MIG_1G }]);
  }
});

it.each([
  '',
  'No devices were found',
  'Failed to initialize NVML: Unknown Error',
  'Unable to determine the device handle for gpu 0000:43:00.0: GPU is lost.',
  'GPU 0: X (UUID: GPU is lost)',
])('finds no UUIDs in %j', (text) => {
  expect(listedUuids(text)).toEqual(new Set());
});

it('ignores the devices of a malformed card', () => {
  const text = `GPU 0: X (UUID: ${H100_A})\nGPU 1: X (UUID: GPU is lost)\n  MIG 3g.40gb Device  0: (UUID: ${MIG_3G})\n`;
  expect(parseGpuList(text)).toEqual([{ uuid: H100_A, migDevices: [] }]);
});

it.each(captureNames('.txt').filter((name) => !name.startsWith('h200')))(
  'reads the list of the captured driver %s',
  (name) => {
    const [gpu] = parseGpuList(capturedDriver(name).list);
    expect(gpu?.uuid).toMatch(/^GPU-/);
    expect(gpu?.migDevices.length).toBe(/mig/.test(name) ? 4 : 0);
  },
);
