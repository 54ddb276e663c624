import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import {
  capturedDriver,
  createCapturedNvidiaSmi,
} from '../../test/fakes/agents/captured-nvidia-smi.ts';
import { createFakeNvidiaSmi } from '../../test/fakes/agents/fake-nvidia-smi.ts';
import { createTestAgent, podSpec } from '../../test/fakes/agents/test-agent.ts';
import { createFakeEngine } from '../../test/fakes/engine/fake-engine.ts';
import { eventually } from '../../test/fakes/eventually.ts';
import { createManualClock } from '../../test/fakes/manual-clock.ts';
import { HOSTS } from '../../test/fixtures/nvidia-faults.ts';
import { TWO_CARDS, xmlDocument } from '../../test/fixtures/nvidia-smi.ts';
import { chooseGpuDriver } from './choose-gpu-driver.ts';
import { createGpuSource } from './gpu-lease.ts';
import { createNvidiaSmi, type NvidiaSmi, PROGRAM_MISSING } from './nvidia/nvidia-smi.ts';
import { nvidiaCardsOnBus, type PciCard } from './pci-bus.ts';

const UUID = 'GPU-00000000-0000-0000-0000-000000000000';
const CARDS: PciCard[] = [
  { address: '0000:01:00.0', module: 'nouveau' },
  { address: '0000:02:00.0', module: null },
];
const NOT_STARTED = { stdout: '', complete: false, problem: `${PROGRAM_MISSING}: ENOENT` };
const MISSING: NvidiaSmi = { run: async () => ({ ...NOT_STARTED, exitCode: null }) };

const removals: (() => void)[] = [];
afterEach(() => {
  for (const remove of removals.splice(0)) remove();
});

it.each(HOSTS)('detects the driver on a host with %s', async (_, script, kind) => {
  const fake = createFakeNvidiaSmi();
  removals.push(fake.remove);
  const smi = createNvidiaSmi({ clock: systemClock, runCommand, env: fake.env });
  if (script !== null) fake.become(script, { csv: TWO_CARDS, xml: xmlDocument() });
  const host = { smi, clock: systemClock, executorId: 'x', simulatedGpus: ['NVIDIA L4'] };
  const options = { ...host, cardsOnBus: async () => [] };
  expect((await chooseGpuDriver({ ...options, mode: 'auto' })).kind).toBe(kind);
  expect((await chooseGpuDriver({ ...options, mode: 'simulated' })).kind).toBe('simulated');
  expect((await chooseGpuDriver({ ...options, mode: 'nvidia' })).kind).toBe('nvidia');
  expect((await chooseGpuDriver({ ...options, mode: 'none' })).kind).toBe('none');
});

/** A host whose driver is not loaded, until the test replaces `host.smi`. */
async function hostWithoutDriver(cards: readonly PciCard[]) {
  const clock = createManualClock();
  const host = { smi: MISSING, cards, runs: 0 };
  const gpuDriver = await chooseGpuDriver({
    mode: 'auto',
    simulatedGpus: [],
    executorId: 'x',
    clock,
    smi: {
      run(args) {
        host.runs += 1;
        return host.smi.run(args);
      },
    },
    cardsOnBus: async () => host.cards,
  });
  return { clock, host, gpuDriver };
}

it('takes up a driver that is loaded after the agent has started: readiness, inventory, metrics, health, leases', async () => {
  const { clock, host, gpuDriver } = await hostWithoutDriver(CARDS);
  const engine = createFakeEngine(clock);
  engine.addImage('registry.example/one:1', `sha256:${'a1'.repeat(32)}`);
  const gpus = createGpuSource(gpuDriver);
  const agent = createTestAgent({ clock, engine, gpuDriver, gpus });
  agent.start();
  removals.push(() => void agent.stop());
  const get = async (url: string) => (await agent.server.inject({ method: 'GET', url })).json();
  await clock.advance(20_000);
  const { ready, components } = await get('/readyz');
  // GPUs are not required: pods without GPUs run.
  expect(ready).toBe(true);
  expect(components.gpu.ok).toBe(false);
  expect(components.gpu.message).toMatch(
    /^waiting for the NVIDIA driver: 2 NVIDIA cards on the PCI bus \(0000:01:00\.0 bound to nouveau, 0000:02:00\.0 without driver\); nvidia-smi could not be started: ENOENT; next attempt in 40 s\. /,
  );
  const before = await get('/v1/inventory');
  expect(before.gpu).toMatchObject({ driver: 'none', devices: [], error: components.gpu.message });

  const captured = capturedDriver('h100-80gb-hbm3-590.48.01.txt');
  const xml = xmlDocument({ uuids: [UUID] });
  host.smi = createCapturedNvidiaSmi({ ...captured, xml });
  await clock.advance(60_000);
  // The jobs also read files of this host, so the clock waits for them between its steps.
  const passing = (what: string, check: () => boolean | Promise<boolean>) =>
    eventually(what, async () => {
      await clock.advance(10_000);
      return check();
    });
  await passing('the driver', async () => gpuDriver.kind === 'nvidia');
  expect((await get('/readyz')).components.gpu).toEqual({ ok: true, message: '1 nvidia' });
  const { gpu, simulated } = await get('/v1/inventory');
  expect(gpu).toMatchObject({ driver: 'nvidia', error: null, devices: [{ uuid: UUID }] });
  expect(simulated).toBe(false);
  await passing('the metrics', async () => {
    const { body } = await agent.server.inject({ method: 'GET', url: '/metrics' });
    return /^nvidia_smi_power_draw_watts\{uuid="00000000-/m.test(body);
  });
  // The health job reads the same cards.
  const known = () => agent.core.gpuHealthStore.cards().map(({ uuid }) => uuid);
  await passing('the health job', () => known().length > 0);
  expect(known()).toEqual([UUID]);
  const id = '3f9f41a6-0001-4000-8000-000000000001';
  const image = { reference: 'registry.example/one:1' };
  const payload = podSpec({ image, gpu_uuids: [UUID], internal_ports: [] });
  const response = await agent.server.inject({ method: 'PUT', url: `/v1/pods/${id}`, payload });
  expect(response.statusCode).toBeLessThan(300);
  expect(agent.core.gpuLeases.holderOf(UUID)).toBe(id);
});

it('starts no program every minute on a host without NVIDIA cards, and sees a card that is added', async () => {
  const { host, gpuDriver } = await hostWithoutDriver([]);
  const runs = host.runs;
  await gpuDriver.detect?.();
  await gpuDriver.detect?.();
  expect(host.runs).toBe(runs);
  expect(await gpuDriver.read()).toMatchObject({ devices: [], error: null });
  host.cards = CARDS;
  await gpuDriver.detect?.();
  expect(host.runs).toBeGreaterThan(runs);
  expect((await gpuDriver.read()).error).toMatch(/^waiting for the NVIDIA driver/);
});

it('reads the NVIDIA cards on the bus and their kernel drivers', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'podwright-pci-'));
  removals.push(() => rmSync(folder, { recursive: true, force: true }));
  const add = (address: string, vendor: string, type: string) => {
    mkdirSync(join(folder, address));
    writeFileSync(join(folder, address, 'vendor'), `${vendor}\n`);
    writeFileSync(join(folder, address, 'class'), `${type}\n`);
  };
  add('0000:02:00.0', '0x10de', '0x030200');
  add('0000:01:00.0', '0x10de', '0x030000');
  add('0000:01:00.1', '0x10de', '0x040300');
  add('0000:00:02.0', '0x8086', '0x030000');
  symlinkSync('../drivers/vfio-pci', join(folder, '0000:01:00.0', 'driver'));
  expect(await nvidiaCardsOnBus(folder)).toEqual([
    { address: '0000:01:00.0', module: 'vfio-pci' },
    { address: '0000:02:00.0', module: null },
  ]);
  await expect(nvidiaCardsOnBus(join(folder, 'none'))).rejects.toThrow();
});
