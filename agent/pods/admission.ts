/**
 * Admission checks on a pod's spec: first the limits of the host, then the provider's policy. They apply to every
 * caller. Pure.
 */

import { parseDockerfile } from '#shared/api/agent/dockerfile.ts';
import { BUILTIN_HOST, type RegistryAuth, registryAddressOf } from '#shared/api/agent/images.ts';
import { isPlainKey, type PodSpec, reservedVariable } from '#shared/api/agent/pod.ts';
import { SECRETS_MOUNT_POINT } from '#shared/api/agent/pod-secrets.ts';
import { VOLUME_MOUNT_PATH, volumesProblem } from '#shared/api/agent/volumes.ts';
import { ApiError } from '#shared/runtime/errors.ts';
import { isLocalRegistry, referencesOf, registryHostOf } from '../containers/images/image-name.ts';
import { type ProviderPolicy, providerRefusals, type Refusal } from './provider-policy.ts';

export type HostLimits = {
  memoryBytes: number;
  /** Memory reserved for the host, because a host without free memory stops answering. */
  memoryReserveBytes: number;
  cpuCores: number;
  /** True: images may come from registries at private addresses. */
  localRegistries: boolean;
  /** The provider's own restrictions. */
  policy: ProviderPolicy;
};

const MAX_PIDS = 65_536;
const MAX_SHM_SHARE = 0.5;
const MAX_VARIABLES = 512;
const MAX_ENVIRONMENT_CHARS = 262_144;
/**
 * Image host as this version accepts it. Stricter than the wire schema, which must accept every spec that earlier
 * versions stored.
 */
const IMAGE_HOST =
  /^[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::\d{1,5})?$/;

type Rule = { field: string; broken(spec: PodSpec, host: HostLimits): string | false };

const RULES: readonly Rule[] = [
  {
    field: 'image.reference',
    broken: (spec, host) => 'reference' in spec.image && againstReferences(spec, host),
  },
  {
    field: 'image.dockerfile',
    broken: (spec, host) => {
      if (!('dockerfile' in spec.image)) return false;
      const parsed = parseDockerfile(spec.image.dockerfile);
      return 'problem' in parsed ? parsed.problem : againstReferences(spec, host);
    },
  },
  {
    field: 'ssh_public_keys',
    broken: ({ ssh_public_keys }) =>
      !ssh_public_keys.every(isPlainKey) && 'each has to be "type base64 comment", without options',
  },
  ...(['entrypoint', 'command', 'environment'] as const).map(
    (field): Rule => ({
      field,
      // A lone surrogate would reach the container as U+FFFD.
      broken: (spec) =>
        !areWellFormed(spec[field]) && 'contains half a character (a lone surrogate)',
    }),
  ),
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
    // Files in /dev/shm use the pod's memory. Killing processes does not free them.
    broken: ({ limits }) =>
      limits.shm_bytes > limits.memory_bytes * MAX_SHM_SHARE &&
      'at most half of limits.memory_bytes, which it is part of',
  },
  {
    field: 'limits.pids',
    broken: ({ limits }) => limits.pids > MAX_PIDS && `at most ${MAX_PIDS}`,
  },
  {
    field: 'internal_ports',
    broken: ({ internal_ports }) => hasRepeats(internal_ports) && 'each port once',
  },
  {
    field: 'volumes',
    broken: ({ volumes, volume }) => {
      const lasting = volume === undefined ? [] : [VOLUME_MOUNT_PATH];
      return volumesProblem([...lasting, ...volumes]) ?? false;
    },
  },
  {
    field: 'volumes',
    broken: ({ volumes, secret_names }) =>
      secret_names.length > 0 &&
      volumes.some((path) => `${path}/`.startsWith(`${SECRETS_MOUNT_POINT}/`)) &&
      `${SECRETS_MOUNT_POINT} holds the secrets of the pod`,
  },
  {
    field: 'secret_names',
    broken: ({ secret_names }) => hasRepeats(secret_names) && 'each name once',
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
  {
    field: 'environment',
    broken: ({ environment }) => {
      const reserved = reservedVariable(environment);
      return reserved !== null && `the name ${reserved} is reserved`;
    },
  },
];

/** Returns every rule that the spec breaks, in order. */
export function refusalsOf(spec: PodSpec, host: HostLimits): Refusal[] {
  const byHost = RULES.flatMap(({ field, broken }) => {
    const message = broken(spec, host);
    return message === false ? [] : [{ field, rule: 'host', message }];
  });
  return [...byHost, ...providerRefusals(spec, host.policy)];
}

/** Throws spec_refused naming the first field that breaks a rule. */
export function checkPolicy(spec: PodSpec, host: HostLimits): void {
  const [first] = refusalsOf(spec, host);
  if (first !== undefined) throw specRefused(first);
}

export function specRefused({ field, rule, message }: Refusal): ApiError {
  const whose = rule === 'host' ? '' : ` by the provider (${rule})`;
  const details = { field, rule };
  return new ApiError('spec_refused', `${field} is refused${whose}: ${message}`, { details });
}

function areWellFormed(texts: readonly string[] | Readonly<Record<string, string>>): boolean {
  return Object.values(texts).every((text) => text.isWellFormed());
}

/** Throws spec_refused for a login at a registry that no image of the pod comes from. */
export function checkLogin(spec: PodSpec, auth: RegistryAuth): void {
  const addresses = referencesOf(spec).map(registryAddressOf);
  if (addresses.includes(auth.host)) return;
  const field = 'registry_auth.host';
  throw new ApiError(
    'spec_refused',
    `${field} is refused: no image of the pod comes from that registry`,
    {
      details: { field },
    },
  );
}

function againstReferences(spec: PodSpec, host: HostLimits): string | false {
  const references = referencesOf(spec);
  // Rejects names that the engine would read as an option or a path, before a row and leases exist.
  const hasInvalidHost = (reference: string) => {
    const [first = '', ...rest] = reference.split('/');
    return rest.length > 0 && !IMAGE_HOST.test(first);
  };
  if (references.some(hasInvalidHost)) return 'its registry is not a host name';
  // Otherwise a renter could make this host connect to its neighbours and read their responses in the error message.
  const isRefused = !host.localRegistries && references.some(isFromLocalRegistry);
  return isRefused && 'registries at private addresses are not allowed';
}

function isFromLocalRegistry(reference: string): boolean {
  const registry = registryHostOf(reference);
  return registry !== null && isLocalRegistry(registry) && !reference.startsWith(BUILTIN_HOST);
}

function memoryFor(host: HostLimits): number {
  return Math.max(0, host.memoryBytes - host.memoryReserveBytes);
}

function hasRepeats(values: readonly unknown[]): boolean {
  return new Set(values).size < values.length;
}
