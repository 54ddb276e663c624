import { expect, it } from 'vitest';
import { H100_A, H100_B, xmlDocument } from '../../../test/fixtures/nvidia-smi.ts';
import { parseGpuXml } from './xml.ts';

it.each(['new', 'old'] as const)('reads a document with %s power readings', async (power) => {
  const inventory = await parseGpuXml(xmlDocument({ power }));
  expect(inventory).toMatchObject({
    driverVersion: '590.48.01',
    cudaVersion: '13.1',
    attachedGpus: 2,
  });
  expect(inventory?.gpus.map((gpu) => gpu.uuid)).toEqual([H100_A, H100_B]);
  expect(inventory?.gpus[0]).toMatchObject({
    uuid: H100_A,
    name: 'NVIDIA H100 80GB HBM3',
    pciBusId: '00000000:1B:00.0',
    memoryTotalMib: 81_559,
    memoryUsedMib: 1024,
    powerDrawW: 312.5,
    powerLimitW: 700,
    processes: [
      {
        pid: 4242,
        name: 'python & friends',
        memoryMib: 1000,
        gpuInstance: null,
        computes: true,
        draws: false,
      },
      {
        pid: 4243,
        name: null,
        memoryMib: null,
        gpuInstance: null,
        computes: false,
        draws: true,
      },
    ],
    migDevices: [],
  });
});

it('returns a single card as a list', async () => {
  const inventory = await parseGpuXml(xmlDocument({ uuids: [H100_A], attached: 4 }));
  expect(inventory?.attachedGpus).toBe(4);
  expect(inventory?.gpus).toHaveLength(1);
});

it('accepts a document without versions or cards', async () => {
  expect(await parseGpuXml(xmlDocument({ uuids: [], head: '' }))).toEqual({
    driverVersion: null,
    cudaVersion: null,
    attachedGpus: 0,
    gpus: [],
  });
});

it.each(['', 'NVIDIA-SMI has failed', '<html></html>', '<nvidia_smi_log', '\u0000'])(
  'returns null for %j, which is not a document of nvidia-smi',
  async (text) => {
    expect(await parseGpuXml(text)).toBeNull();
  },
);
