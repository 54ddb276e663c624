import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { findingsOf } from '#shared/check/doctor.ts';
import { systemClock } from '#shared/runtime/clock.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import {
  createFakeNvidiaSmi,
  type FakeNvidiaSmi,
} from '../../test/fakes/agents/fake-nvidia-smi.ts';
import type { EngineReport } from '../containers/engine/engine-report.ts';
import type { GpuMode } from '../gpu/choose-gpu-driver.ts';
import { createNvidiaSmi } from '../gpu/nvidia/nvidia-smi.ts';
import { areLinked, GPU_CHECKS, uuidsIn } from './gpu.check.ts';
import { type GpuFacts, readGpuFacts } from './gpu-facts.ts';

const UUIDS = [
  'GPU-51a2b3c4-0001-4aaa-8bbb-00000000000a',
  'GPU-51a2b3c4-0001-4aaa-8bbb-00000000000b',
];
const ADDRESSES = ['0000:3b:00.0', '0001:af:00.0'];
const row = (index: number, persistence = 'Enabled') =>
  `${UUIDS[index]}, NVIDIA H100 80GB HBM3, 560.35.03, 0000${ADDRESSES[index]?.toUpperCase()}, ${persistence}`;

let root: string;
let smi: FakeNvidiaSmi;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'podwright-gpu-'));
  smi = createFakeNvidiaSmi();
  smi.become(`echo '${row(0)}'; echo '${row(1)}'`);
});
afterEach(() => {
  rmSync(root, { recursive: true });
  smi.remove();
});

function put(path: string, text = ''): void {
  mkdirSync(join(root, path, '..'), { recursive: true });
  writeFileSync(join(root, path), text, { mode: 0o755 });
}

/** Creates a host with two GPUs and no fault. */
function installCards(): void {
  for (const address of ADDRESSES) {
    put(`sys/bus/pci/devices/${address}/vendor`, '0x10de\n');
    put(`sys/bus/pci/devices/${address}/class`, '0x030200\n');
    put(`proc/driver/nvidia/gpus/${address}/information`);
  }
  put('sys/bus/pci/devices/0000:3b:00.1/vendor', '0x10de\n');
  put('sys/bus/pci/devices/0000:3b:00.1/class', '0x040300\n');
  for (const name of ['nvidia0', 'nvidia1', 'nvidiactl', 'nvidia-uvm', 'nvidia-uvm-tools'])
    put(`dev/${name}`);
  put('bin/nvidia-container-runtime-hook');
}

/** An engine without a way to pass GPUs to containers. */
const ENGINE: EngineReport = {
  version: '27.3.1',
  apiVersion: '1.47',
  storageDriver: 'overlay2',
  backingFilesystem: 'xfs',
  cgroupDriver: 'systemd',
  cgroupVersion: '2',
  runtimes: ['runc'],
  defaultRuntime: 'runc',
  cdiSpecDirs: [],
  rootDir: '/var/lib/docker',
  seccomp: true,
  rootless: false,
  liveRestore: true,
  limits: { memory: true, pids: true, cpu: true },
};

const read = (mode: GpuMode = 'auto'): Promise<GpuFacts> =>
  readGpuFacts({
    clock: systemClock,
    mode,
    smi: createNvidiaSmi({ clock: systemClock, runCommand, env: smi.env }),
    runCommand: async (_file, args) => ({
      exitCode: 0,
      stdout: args[0] === '--version' ? 'NVIDIA Container Toolkit CLI version 1.17.8\n' : '',
      stderr: '',
      ended: null,
    }),
    path: `/no/such:${join(root, 'bin')}`,
    root,
  });

const gpuFindings = (facts: GpuFacts, engine: EngineReport | null = ENGINE) =>
  findingsOf(GPU_CHECKS, { ...facts, engine });
const statuses = (facts: GpuFacts) =>
  Object.fromEntries(gpuFindings(facts).map(({ id, status }) => [id, status]));
const finding = (facts: GpuFacts, id: string) => gpuFindings(facts).find((each) => each.id === id);

it('reports no fault of a host whose GPUs work', async () => {
  installCards();
  put('dev/char/0:0');
  const facts = await read();
  expect(statuses(facts)).toEqual({
    'nvidia-driver': 'ok',
    'gpu-sources': 'ok',
    'nvidia-persistence': 'ok',
    'nvidia-devices': 'ok',
    'nvidia-runtime': 'ok',
    'nvidia-toolkit': 'ok',
  });
  expect(finding(facts, 'nvidia-driver')?.finding).toBe(
    'driver 560.35.03, 2 × NVIDIA H100 80GB HBM3',
  );
  expect(uuidsIn(facts)).toEqual(UUIDS);
  expect(areLinked(facts)).toBe(true);
});

it('detects device nodes without links in /dev/char', async () => {
  installCards();
  expect(areLinked(await read())).toBe(false);
});

it('reports cards as unknown while nvidia-smi hangs or the engine does not answer', async () => {
  installCards();
  const facts = await read();
  const problem = 'nvidia-smi did not end within 10000 ms';
  const hung = { ...facts, smi: { stdout: '', complete: false, problem, exitCode: null } };
  expect(finding(hung, 'nvidia-driver')).toMatchObject({ status: 'unknown', timed_out: true });
  expect(finding(hung, 'gpu-sources')).toMatchObject({ status: 'unknown', timed_out: true });
  rmSync(join(root, 'bin'), { recursive: true });
  const unasked = gpuFindings(await read(), null).find(({ id }) => id === 'nvidia-runtime');
  expect(unasked?.status).toBe('unknown');
});

it('names a missing card and the source that does not list it', async () => {
  installCards();
  smi.become(`echo '${row(0, 'Disabled')}'`);
  const facts = await read();
  expect(finding(facts, 'gpu-sources')).toMatchObject({
    status: 'fail',
    finding: 'GPUs differ: nvidia-smi lacks 0001:af:00.0',
  });
  expect(finding(facts, 'nvidia-persistence')?.status).toBe('warn');
});

it('distinguishes a mismatched driver from one that is missing or finds no card', async () => {
  installCards();
  smi.become('echo "Failed to initialize NVML: Driver/library version mismatch"; exit 18');
  expect(finding(await read(), 'nvidia-driver')).toMatchObject({
    status: 'fail',
    remedy: expect.stringContaining('reboot'),
  });
  smi.become('echo "No devices were found"; exit 6');
  expect(finding(await read(), 'nvidia-driver')).toMatchObject({ status: 'fail' });
  rmSync(join(root, 'proc'), { recursive: true });
  smi.remove();
  const missing = await read();
  expect(finding(missing, 'nvidia-driver')?.remedy).toContain('install the NVIDIA driver');
  expect(finding(missing, 'gpu-sources')?.finding).toContain(
    'the kernel module lacks 0000:3b:00.0',
  );
});

it('judges a host without cards by its configured kind of GPUs', async () => {
  smi.become('echo "No devices were found"; exit 6');
  expect(statuses(await read())).toEqual({ 'nvidia-driver': 'warn' });
  expect(statuses(await read('nvidia'))).toEqual({ 'nvidia-driver': 'fail' });
  expect(statuses(await read('none'))).toEqual({ 'nvidia-driver': 'ok' });
  expect(statuses(await read('simulated'))).toEqual({ 'nvidia-driver': 'warn' });
});

it('requires device nodes and a way for Docker to pass GPUs', async () => {
  installCards();
  rmSync(join(root, 'bin'), { recursive: true });
  rmSync(join(root, 'dev/nvidia-uvm'));
  const facts = await read();
  expect(finding(facts, 'nvidia-devices')).toMatchObject({
    status: 'fail',
    finding: '/dev lacks nvidia-uvm',
  });
  expect(finding(facts, 'nvidia-runtime')).toMatchObject({
    status: 'fail',
    remedy: expect.stringContaining('nvidia-container-toolkit'),
  });
});

it.each([
  ['1.17.7', 'fail'],
  ['1.16.9', 'fail'],
  ['1.17.8', 'ok'],
  ['1.18.0', 'ok'],
  ['2.0.0', 'ok'],
  [null, 'unknown'],
])('judges the container toolkit by its version: %s', async (toolkitVersion, status) => {
  installCards();
  expect(finding({ ...(await read()), toolkitVersion }, 'nvidia-toolkit')?.status).toBe(status);
});

it('judges nvidia-smi even if reads of the driver’s files hang', async () => {
  installCards();
  const facts = { ...(await read()), tree: { problem: 'no answer within 4000 ms' } };
  expect(statuses(facts)).toMatchObject({ 'nvidia-driver': 'ok', 'gpu-sources': 'unknown' });
});
