/**
 * The smallest probe that a validator requests when a pod may not use the whole host, checked against the agent's
 * rules.
 */
import { expect, it } from 'vitest';
import { PodPut } from '#shared/api/agent/pod.ts';
import { NO_POLICY, providerRefusals } from '../../agent/pods/provider-policy.ts';
import { leastSpec, probeSpec } from '../../validator/inspection/rental-probe/probe-spec.ts';
import { testInventory } from '../fixtures/host-inventory.ts';

const GIB = 2 ** 30;
/** Provider rules with small limits that still allow a pod. */
const RULES = {
  ...NO_POLICY,
  max_cpu_cores: 1,
  max_memory_bytes: GIB,
  max_disk_bytes: GIB,
  max_shm_bytes: 2 ** 26,
  max_pids: 64,
  max_ports: 1,
  allow_builds: false,
  allow_entrypoint: false,
  images: { allow: [], deny: ['*'] },
};

it('the smallest probe satisfies a provider’s rules that a probe of the whole host would violate', () => {
  const inventory = testInventory('00000000-0000-4000-8000-000000000001', { gpus: 2 });
  const options = { image: 'podwright.local/base:1', publicKey: 'ssh-ed25519 AAAA probe' };
  const brokenBy = (spec: PodPut) => providerRefusals(spec, RULES).map(({ rule }) => rule);
  expect(brokenBy(PodPut.parse(probeSpec(inventory, options).spec))).toEqual([
    ...['max_cpu_cores', 'max_memory_bytes', 'max_pids', 'max_disk_bytes'],
  ]);
  const { spec, expected } = leastSpec(inventory, options);
  expect(brokenBy(PodPut.parse(spec))).toEqual([]);
  expect([spec.gpu_uuids?.length, expected.cpuCores, expected.memoryBytes]).toEqual([1, 1, GIB]);
});
