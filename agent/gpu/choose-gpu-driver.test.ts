import { afterEach, expect, it } from 'vitest';
import { systemClock } from '#shared/runtime/clock.ts';
import { runCommand } from '#shared/runtime/run-command.ts';
import { createFakeNvidiaSmi } from '../../test/fakes/agents/fake-nvidia-smi.ts';
import { HOSTS } from '../../test/fixtures/nvidia-faults.ts';
import { TWO_CARDS, xmlDocument } from '../../test/fixtures/nvidia-smi.ts';
import { chooseGpuDriver } from './choose-gpu-driver.ts';
import { createNvidiaSmi } from './nvidia/nvidia-smi.ts';

const fakes: { remove(): void }[] = [];
afterEach(() => {
  for (const fake of fakes.splice(0)) fake.remove();
});

it.each(HOSTS)('detects the driver on a host with %s', async (_, script, kind) => {
  const fake = createFakeNvidiaSmi();
  fakes.push(fake);
  const smi = createNvidiaSmi({ clock: systemClock, runCommand, env: fake.env });
  if (script !== null) fake.become(script, { csv: TWO_CARDS, xml: xmlDocument() });
  const options = { smi, clock: systemClock, executorId: 'x', simulatedGpus: ['NVIDIA L4'] };
  expect((await chooseGpuDriver({ ...options, mode: 'auto' })).kind).toBe(kind);
  expect((await chooseGpuDriver({ ...options, mode: 'simulated' })).kind).toBe('simulated');
  expect((await chooseGpuDriver({ ...options, mode: 'nvidia' })).kind).toBe('nvidia');
  expect((await chooseGpuDriver({ ...options, mode: 'none' })).kind).toBe('none');
});
