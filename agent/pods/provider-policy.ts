/** The provider's policy: a JSON file, read once at the agent's start, whose rules apply to every caller. */
import { readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import { BUILTIN_HOST } from '#shared/api/agent/images.ts';
import type { PodSpec } from '#shared/api/agent/pod.ts';
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import {
  type ImageName,
  imageNameOf,
  matchesImage,
  matchesPattern,
  matchesRegistry,
  referencesOf,
} from '../containers/images/image-name.ts';

/** The file is wrong; the message names every wrong field. */
export class PolicyError extends ConfigError {
  override name = 'PolicyError';
}

const MAX_BYTES = 256 * 1024;
const MAX_PATTERNS = 1_000;
const MAX_PATTERN_CHARS = 255;
const MIB = 2 ** 20;

const Pattern = z
  .string()
  .min(1)
  .max(MAX_PATTERN_CHARS)
  .regex(/^[\x21-\x7e]+$/, 'Printable characters without blanks only');
const Patterns = z.array(Pattern).max(MAX_PATTERNS);
/** Without `allow`, everything is allowed. `deny` takes precedence. */
const Lists = z.strictObject({ allow: Patterns.optional(), deny: Patterns.default([]) });

/** All fields are optional. If a field is absent, only the host's own limit applies. */
export const ProviderPolicy = z.strictObject({
  /** `docker.io`, `ghcr.io`, `*.example.org`; `:port` restricts a pattern to that port. */
  registries: Lists.prefault({}),
  /** `docker.io/library/*`, `ghcr.io/team/app:1.*`; a pattern without a tag matches every tag. */
  images: Lists.prefault({}),
  /** Concurrent pods on this host. */
  max_pods: z.int().min(0).max(1_000).optional(),
  /** Limits per pod. */
  max_cpu_cores: z.number().positive().optional(),
  max_memory_bytes: z
    .int()
    .min(16 * MIB)
    .optional(),
  max_shm_bytes: z.int().min(0).optional(),
  max_pids: z.int().min(16).optional(),
  max_disk_bytes: z
    .int()
    .min(16 * MIB)
    .optional(),
  max_ports: z.int().min(0).max(64).optional(),
  /** Allow builds from a Dockerfile. */
  allow_builds: z.boolean().default(true),
  /** Allow pods to replace their image's entrypoint. */
  allow_entrypoint: z.boolean().default(true),
  /** Names of variables that no pod may set: `LD_PRELOAD`, `NCCL_*`. */
  denied_environment: Patterns.default([]),
});
export type ProviderPolicy = z.output<typeof ProviderPolicy>;

/** Policy without a file: no restrictions. */
export const NO_POLICY: ProviderPolicy = ProviderPolicy.parse({});

/** Throws PolicyError that names the path and every wrong field. */
export function readPolicyFile(path: string): ProviderPolicy {
  const parsed = ProviderPolicy.safeParse(readJson(path));
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path: at, message }) => {
    return `${at.length === 0 ? 'the whole' : at.join('.')}: ${message}`;
  });
  throw new PolicyError(`AGENT_POLICY ${path}: ${problems.join('; ')}`);
}

function readJson(path: string): unknown {
  try {
    const file = statSync(path);
    // Reading a pipe would block for ever.
    if (!file.isFile()) throw new Error('not a file');
    if (file.size > MAX_BYTES) throw new Error(`larger than ${MAX_BYTES} bytes`);
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    throw new PolicyError(`AGENT_POLICY ${path}: ${messageOf(cause)}`, { cause });
  }
}

/** A rule that a spec breaks. `rule` is the policy's field, or `host` for a limit of the host. */
export type Refusal = { field: string; rule: string; message: string };

type PolicyRule = {
  field: string;
  rule: string;
  /** Returns why the spec is refused, or null. */
  refuses(spec: PodSpec, policy: ProviderPolicy): string | null;
};

const POLICY_RULES: readonly PolicyRule[] = [
  {
    field: 'image.reference',
    rule: 'registries',
    refuses: (spec, { registries }) =>
      firstOf(registryImagesOf(spec), (name) =>
        listed(`registry ${name.registry}`, registries, (pattern) =>
          matchesRegistry(pattern, name),
        ),
      ),
  },
  {
    field: 'image.reference',
    rule: 'images',
    refuses: (spec, { images }) =>
      firstOf(registryImagesOf(spec), (name) =>
        listed(`${name.name}:${name.tag}`, images, (pattern) => matchesImage(pattern, name)),
      ),
  },
  {
    field: 'image.dockerfile',
    rule: 'allow_builds',
    refuses: ({ image }, { allow_builds: allowed }) =>
      allowed || !('dockerfile' in image) ? null : 'this host builds no images',
  },
  limit('limits.cpu_cores', 'max_cpu_cores', ({ limits }) => limits.cpu_cores),
  limit('limits.memory_bytes', 'max_memory_bytes', ({ limits }) => limits.memory_bytes),
  limit('limits.shm_bytes', 'max_shm_bytes', ({ limits }) => limits.shm_bytes),
  limit('limits.pids', 'max_pids', ({ limits }) => limits.pids),
  // A pod without a disk limit may fill the disk, so it counts as unlimited.
  limit('limits.disk_bytes', 'max_disk_bytes', ({ limits }) => limits.disk_bytes ?? Infinity),
  limit('internal_ports', 'max_ports', ({ internal_ports }) => internal_ports.length),
  {
    field: 'entrypoint',
    rule: 'allow_entrypoint',
    refuses: ({ entrypoint }, { allow_entrypoint: allowed }) =>
      allowed || entrypoint.length === 0
        ? null
        : 'this host runs images with their own entrypoint only',
  },
  {
    field: 'environment',
    rule: 'denied_environment',
    refuses: ({ environment }, { denied_environment: patterns }) => {
      const isDenied = (name: string) => patterns.some((pattern) => matchesPattern(pattern, name));
      const denied = Object.keys(environment).filter(isDenied);
      return denied.length === 0 ? null : `${denied.slice(0, MAX_NAMED).join(', ')} may not be set`;
    },
  },
];
const MAX_NAMED = 10;

/** Returns every broken rule in the order of the policy's fields. */
export function providerRefusals(spec: PodSpec, policy: ProviderPolicy): Refusal[] {
  return POLICY_RULES.flatMap(({ field, rule, refuses }) => {
    const message = refuses(spec, policy);
    return message === null ? [] : [{ field, rule, message }];
  });
}

type Limit = Extract<keyof ProviderPolicy, `max_${string}`>;

function limit(field: string, rule: Limit, readValue: (spec: PodSpec) => number): PolicyRule {
  return {
    field,
    rule,
    refuses: (spec, policy) => {
      const max = policy[rule];
      if (max === undefined || readValue(spec) <= max) return null;
      return readValue(spec) === Infinity ? `is required, at most ${max}` : `at most ${max}`;
    },
  };
}

function listed(
  name: string,
  { allow, deny }: ProviderPolicy['images'],
  matches: (pattern: string) => boolean,
): string | null {
  if (deny.some(matches)) return `${name} is denied`;
  return allow === undefined || allow.some(matches) ? null : `${name} is not among the allowed`;
}

/** Images from registries, including base images of a build, excluding the built-in image. */
function registryImagesOf(spec: PodSpec): ImageName[] {
  return referencesOf(spec)
    .filter((reference) => !reference.startsWith(BUILTIN_HOST))
    .map(imageNameOf);
}

function firstOf<T>(values: readonly T[], check: (value: T) => string | null): string | null {
  return values.map(check).find((message) => message !== null) ?? null;
}
