/** What this host allows in a pod's spec, whoever signed it (agent reference 7). Pure. */
import type { PodSpec } from '#shared/agent-api/pod.ts';
import { ApiError } from '#shared/errors.ts';
import { BUILTIN_HOST } from '../images/builtin-image.ts';
import { isLocalRegistry, registryHostOf } from '../images/registry-host.ts';

export type HostLimits = {
  memoryBytes: number;
  /** Kept for the host itself: a starved host goes dark. */
  memoryReserveBytes: number;
  cpuCores: number;
  /** Whether images may come from registries at private addresses. */
  localRegistries: boolean;
};

const MAX_PIDS = 65_536;
const MAX_VARIABLES = 512;
const MAX_ENVIRONMENT_CHARS = 262_144;

type Rule = { field: string; broken(spec: PodSpec, host: HostLimits): string | false };

const RULES: readonly Rule[] = [
  {
    field: 'image.reference',
    broken: ({ image }, host) => {
      const registry = registryHostOf(image.reference);
      // Else a renter could have this host knock at its neighbours, and read in the error what answers.
      const refused = registry !== null && isLocalRegistry(registry) && !isBuiltin(image.reference);
      return refused && !host.localRegistries && 'registries at private addresses are not allowed';
    },
  },
  {
    field: 'limits.memory_bytes',
    broken: ({ limits }, host) =>
      limits.memory_bytes > memoryFor(host) && `at most ${memoryFor(host)} on this host`,
  },
  {
    field: 'limits.cpu_cores',
    broken: ({ limits }, host) =>
      limits.cpu_cores > host.cpuCores && `at most ${host.cpuCores} on this host`,
  },
  {
    field: 'limits.shm_bytes',
    broken: ({ limits }) =>
      limits.shm_bytes > limits.memory_bytes && 'at most limits.memory_bytes, which it is part of',
  },
  {
    field: 'limits.pids',
    broken: ({ limits }) => limits.pids > MAX_PIDS && `at most ${MAX_PIDS}`,
  },
  {
    field: 'internal_ports',
    broken: ({ internal_ports }) => hasRepeats(internal_ports) && 'each port once',
  },
  { field: 'gpu_uuids', broken: ({ gpu_uuids }) => hasRepeats(gpu_uuids) && 'each GPU once' },
  {
    field: 'environment',
    broken: ({ environment }) => {
      const entries = Object.entries(environment);
      const chars = entries.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
      const tooMuch = entries.length > MAX_VARIABLES || chars > MAX_ENVIRONMENT_CHARS;
      return tooMuch && `at most ${MAX_VARIABLES} variables of ${MAX_ENVIRONMENT_CHARS} characters`;
    },
  },
];

/** Throws spec_refused naming the first field that breaks a rule. */
export function checkPolicy(spec: PodSpec, host: HostLimits): void {
  for (const { field, broken } of RULES) {
    const allowed = broken(spec, host);
    if (allowed === false) continue;
    throw new ApiError('spec_refused', `${field} is refused: ${allowed}`, { details: { field } });
  }
}

function isBuiltin(reference: string): boolean {
  return reference.startsWith(BUILTIN_HOST);
}

function memoryFor(host: HostLimits): number {
  return Math.max(0, host.memoryBytes - host.memoryReserveBytes);
}

function hasRepeats(values: readonly unknown[]): boolean {
  return new Set(values).size < values.length;
}
