/** The check policy: limits and modes of checks in a versioned file. Evidence stores its hash, so that verdicts can be replayed. */
import { join } from 'node:path';
import { z } from 'zod';
import { EgressCheckRequest, ImageCheckRequest } from '#shared/api/agent/host-checks.ts';
import { ImageReference } from '#shared/api/agent/pod.ts';
import { CHECK_MODES, type CheckMode } from '#shared/api/central/validator-routes.ts';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import { readPolicyFile } from './policy-file.ts';

const MAX_POLICY_BYTES = 1_000_000;
const MAX_LINES = 1_000;
/** Parts of a whole in `*_permille` fields. */
export const PERMILLE = 1_000;

const Day = z.string().refine((text) => parseIsoTime(text) !== null, 'Not an ISO 8601 time');
const VersionText = z.string().regex(/^\d{1,6}(\.\d{1,6}){1,3}$/, 'Not a version like 1.2.3');
const Permille = z.int().min(0).max(1_000_000);
const lines = <T>(value: z.ZodType<T>) =>
  z
    .record(z.string().min(1).max(200), value)
    .refine((record) => Object.keys(record).length <= MAX_LINES, `More than ${MAX_LINES} lines`);

export const CheckPolicy = z.strictObject({
  version: z.int().min(1).max(1_000_000),
  /** By check id, or by id and reason (`pow_cpu POW_MISMATCH`): the mode that replaces the default, from a time on. */
  modes: lines(z.strictObject({ mode: z.enum(CHECK_MODES), from: Day.nullable() })),
  /** Oldest agent. */
  min_agent_version: VersionText,
  clock_warn_ms: z.int().min(0).max(600_000),
  clock_fail_ms: z.int().min(0).max(600_000),
  max_gpus: z.int().min(1).max(1_024),
  /** Least and most memory in MiB by full GPU name. */
  models: lines(z.tuple([z.int().min(1), z.int().min(1)])),
  /** Oldest driver, and the time from which it is required. */
  driver_min: z.strictObject({ version: VersionText, from: Day }),
  /** SHA-256 of libnvidia-ml.so.1 by driver version. */
  driver_libraries: lines(z.array(z.string().regex(/^[0-9a-f]{64}$/)).max(100)),
  /** Least share of the default power limit. */
  min_power_permille: Permille,
  idle_utilization_percent: z.int().min(1).max(100),
  idle_memory_permille: Permille,
  wedge_utilization_percent: z.int().min(1).max(100),
  wedge_memory_permille: Permille,
  /** Most difference between two sources of the same figure. */
  memory_margin_permille: Permille,
  cpu_margin: z.int().min(0).max(1_024),
  /** Most cores in use on a host without a pod. */
  max_side_load_cores: z.int().min(0).max(1_024),
  /** Most data of others on the disk of pods. */
  max_side_disk_gib: z.int().min(0).max(1_000_000),
  /** Providers, and cards by UUID, in addition to those that the central API bans. */
  banned_hotkeys: z.array(Hotkey).max(10_000),
  banned_gpus: z.array(z.string().max(200)).max(10_000),
  min_free_disk_gib: z.int().min(0).max(1_000_000),
  /** Least mean of the slower direction. Below `bandwidth_floor_mbit` the first measurement counts. */
  min_bandwidth_mbit: z.int().min(0).max(1_000_000),
  bandwidth_floor_mbit: z.int().min(0).max(1_000_000),
  /** Image whose digest the host's engine has to read from its registry; null for none. */
  egress_image: EgressCheckRequest.shape.image.nullable(),
  /** Images of templates that every host has to be able to start. */
  template_images: ImageCheckRequest.shape.images.min(0),
  min_ports_reached: z.int().min(1).max(100),
  /** Limits of a proof's time, relative to other executors with the same hardware. */
  pow_fastest_permille: Permille,
  pow_slowest_permille: Permille,
  /** Validity of a passed rental probe, and the image that it runs. */
  rental_probe_hours: z.int().min(1).max(720),
  rental_probe_image: ImageReference,
});
export type CheckPolicy = z.output<typeof CheckPolicy>;

/** The policy of this version. */
export const DEFAULT_CHECK_POLICY_FILE: string = join(
  import.meta.dirname,
  'default-check-policy.json',
);

/** Throws ConfigError that names the file and every wrong field. */
export function readCheckPolicy(path: string = DEFAULT_CHECK_POLICY_FILE): CheckPolicy {
  return readPolicyFile(CheckPolicy, path, { what: 'checks', maxBytes: MAX_POLICY_BYTES });
}

/** SHA-256 of the policy's canonical JSON, hex. */
export function checkPolicyHashOf(policy: CheckPolicy): string {
  return sha256Hex(canonicalJson(policy));
}

/** The mode of a check at a time. An entry for check and reason takes precedence over one for the check. */
export function modeOf(
  { id, mode }: { id: string; mode: CheckMode },
  { modes }: CheckPolicy,
  { atMs, reason = null }: { atMs: number; reason?: string | null },
): CheckMode {
  const inForce = (line: CheckPolicy['modes'][string] | undefined) => {
    const fromMs = line === undefined || line.from === null ? null : parseIsoTime(line.from);
    return fromMs !== null && atMs < fromMs ? undefined : line?.mode;
  };
  const ofReason = reason === null ? undefined : inForce(modes[`${id} ${reason}`]);
  return ofReason ?? inForce(modes[id]) ?? mode;
}
