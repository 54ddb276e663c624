import { expect, it } from 'vitest';
import { PodSpec } from '#shared/api/agent/pod.ts';
import { podSpec } from '../../test/fakes/agents/test-agent.ts';
import { checkPolicy, type HostLimits } from './admission.ts';
import { NO_POLICY } from './provider-policy.ts';

const HOST: HostLimits = {
  memoryBytes: 2 ** 33,
  memoryReserveBytes: 2 ** 30,
  cpuCores: 4,
  localRegistries: false,
  policy: NO_POLICY,
};
const limits = podSpec().limits;

it.each([
  ['the built-in image', {}],
  ['a public registry', { image: { reference: 'ghcr.io/a/b:1' } }],
  [
    'the maximum resources of the host',
    { limits: { ...limits, memory_bytes: 7 * 2 ** 30, cpu_cores: 4 } },
  ],
  [
    'environment variables that templates use',
    { environment: { PODWRIGHT_OWN_SSHD: '1', NVIDIA_VISIBLE_DEVICES: 'all' } },
  ],
])('accepts %s', (_, change) => {
  expect(() => checkPolicy(PodSpec.parse(podSpec(change)), HOST)).not.toThrow();
});

it.each([
  ['image.reference', { image: { reference: '169.254.169.254/x/y' } }],
  ['image.reference', { image: { reference: 'localhost:5000/x' } }],
  ['limits.memory_bytes', { limits: { ...limits, memory_bytes: 7 * 2 ** 30 + 1 } }],
  ['limits.cpu_cores', { limits: { ...limits, cpu_cores: 4.1 } }],
  ['limits.shm_bytes', { limits: { ...limits, shm_bytes: limits.memory_bytes / 2 + 1 } }],
  ['limits.pids', { limits: { ...limits, pids: 65_537 } }],
  ['internal_ports', { internal_ports: [80, 80] }],
  ['environment', { environment: { A: 'b', PODWRIGHT_SESSION: 'x' } }],
  ['environment', { environment: { BIG: 'x'.repeat(30_000), ...manyVariables() } }],
])('rejects a spec that breaks the rule for %s', (field, change) => {
  expect(() => checkPolicy(PodSpec.parse(podSpec(change)), HOST)).toThrow(
    expect.objectContaining({
      code: 'spec_refused',
      options: { details: { field, rule: 'host' } },
    }),
  );
});

it('accepts local registries if the provider allows them', () => {
  const spec = PodSpec.parse(podSpec({ image: { reference: 'localhost:5000/x' } }));
  expect(() => checkPolicy(spec, { ...HOST, localRegistries: true })).not.toThrow();
});

function manyVariables(): Record<string, string> {
  return Object.fromEntries(Array.from({ length: 512 }, (_, index) => [`V${index}`, 'x']));
}
