/** What the provider refuses, whoever signed: a JSON file, read once at the agent's start (agent reference 7). */
import { readFileSync, statSync } from 'node:fs';
import { z } from 'zod';
import { ConfigError } from '#shared/runtime/config.ts';
import { messageOf } from '#shared/runtime/errors.ts';

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
