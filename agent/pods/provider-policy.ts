/** What the provider refuses, whoever signed: a JSON file, read once at the agent's start (agent reference 7). */
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
/** Absent `allow`: everything. What both name is denied. */
const Lists = z.strictObject({ allow: Patterns.optional(), deny: Patterns.default([]) });

/** Every field may be left out: then only the host's own limits hold. */
export const ProviderPolicy = z.strictObject({
  /** `docker.io`, `ghcr.io`, `*.example.org`, with `:port` for that port alone. */
  registries: Lists.prefault({}),
  /** `docker.io/library/*`, `ghcr.io/team/app:1.*`; without a tag every tag is meant. */
  images: Lists.prefault({}),
  /** Pods on this host at a time. */
  max_pods: z.int().min(0).max(1_000).optional(),
  /** Of one pod. */
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
  /** Whether images may be built here from a Dockerfile. */
  allow_builds: z.boolean().default(true),
  /** Whether a pod may replace its image's entrypoint. */
  allow_entrypoint: z.boolean().default(true),
  /** Names of variables that no pod may set: `LD_PRELOAD`, `NCCL_*`. */
  denied_environment: Patterns.default([]),
});
export type ProviderPolicy = z.output<typeof ProviderPolicy>;

/** Without a file. */
export const NO_POLICY: ProviderPolicy = ProviderPolicy.parse({});

/** Throws PolicyError with the path and every field that is wrong. */
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
    // A pipe would keep the reader for ever.
    if (!file.isFile()) throw new Error('not a file');
    if (file.size > MAX_BYTES) throw new Error(`larger than ${MAX_BYTES} bytes`);
    return JSON.parse(readFileSync(path, 'utf8'));
  } catch (cause) {
    throw new PolicyError(`AGENT_POLICY ${path}: ${messageOf(cause)}`, { cause });
  }
}

// MERGED agent/pods/provider-policy.ts: What of a pod's spec the provider's policy refuses, and by which of its rules. Pure.
/** One reason against a spec; `rule` is the policy's field, or `host` for a limit of the host itself. */
export type Refusal = { field: string; rule: string; message: string };

type Check = {
  field: string;
  rule: string;
  /** Why not; null when there is nothing against it. */
  against(spec: PodSpec, policy: ProviderPolicy): string | null;
};

const CHECKS: readonly Check[] = [
  {
    field: 'image.reference',
    rule: 'registries',
    against: (spec, { registries }) =>
      firstOf(foreignImagesOf(spec), (name) =>
        listed(`registry ${name.registry}`, registries, (pattern) =>
          matchesRegistry(pattern, name),
        ),
      ),
  },
  {
    field: 'image.reference',
    rule: 'images',
    against: (spec, { images }) =>
      firstOf(foreignImagesOf(spec), (name) =>
        listed(`${name.name}:${name.tag}`, images, (pattern) => matchesImage(pattern, name)),
      ),
  },
  {
    field: 'image.dockerfile',
    rule: 'allow_builds',
    against: ({ image }, { allow_builds: allowed }) =>
      allowed || !('dockerfile' in image) ? null : 'images are not built here',
  },
  limit('limits.cpu_cores', 'max_cpu_cores', ({ limits }) => limits.cpu_cores),
  limit('limits.memory_bytes', 'max_memory_bytes', ({ limits }) => limits.memory_bytes),
  limit('limits.shm_bytes', 'max_shm_bytes', ({ limits }) => limits.shm_bytes),
  limit('limits.pids', 'max_pids', ({ limits }) => limits.pids),
  // Without a limit of its own a pod may fill the disk.
  limit('limits.disk_bytes', 'max_disk_bytes', ({ limits }) => limits.disk_bytes ?? Infinity),
  limit('internal_ports', 'max_ports', ({ internal_ports }) => internal_ports.length),
  {
    field: 'entrypoint',
    rule: 'allow_entrypoint',
    against: ({ entrypoint }, { allow_entrypoint: allowed }) =>
      allowed || entrypoint.length === 0 ? null : 'images run with their own entrypoint here',
  },
  {
    field: 'environment',
    rule: 'denied_environment',
    against: ({ environment }, { denied_environment: patterns }) => {
      const isDenied = (name: string) => patterns.some((pattern) => matchesPattern(pattern, name));
      const denied = Object.keys(environment).filter(isDenied);
      return denied.length === 0 ? null : `${denied.slice(0, MAX_NAMED).join(', ')} may not be set`;
    },
  },
];
const MAX_NAMED = 10;

/** All reasons, in the order of the policy's fields; empty when the provider has nothing against the spec. */
export function providerRefusals(spec: PodSpec, policy: ProviderPolicy): Refusal[] {
  return CHECKS.flatMap(({ field, rule, against }) => {
    const message = against(spec, policy);
    return message === null ? [] : [{ field, rule, message }];
  });
}

type Limit = Extract<keyof ProviderPolicy, `max_${string}`>;

function limit(field: string, rule: Limit, asked: (spec: PodSpec) => number): Check {
  return {
    field,
    rule,
    against: (spec, policy) => {
      const most = policy[rule];
      if (most === undefined || asked(spec) <= most) return null;
      return asked(spec) === Infinity ? `has to be given, at most ${most}` : `at most ${most}`;
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

/** What comes from registries, also for a build: all but the image that is made here from the host's own busybox. */
function foreignImagesOf(spec: PodSpec): ImageName[] {
  return referencesOf(spec)
    .filter((reference) => !reference.startsWith(BUILTIN_HOST))
    .map(imageNameOf);
}

function firstOf<T>(values: readonly T[], judge: (value: T) => string | null): string | null {
  return values.map(judge).find((message) => message !== null) ?? null;
}
