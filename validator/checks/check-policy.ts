/** The thresholds and modes that checks go by: a versioned file, hashed, so that anybody can judge again (validator reference 5). */
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
export const ONE_THOUSAND = 1_000;

const Day = z.string().refine((text) => parseIsoTime(text) !== null, 'No ISO 8601 time');
const VersionText = z.string().regex(/^\d{1,6}(\.\d{1,6}){1,3}$/, 'Numbers with points between');
const Permille = z.int().min(0).max(1_000_000);
const lines = <T>(value: z.ZodType<T>) =>
  z
    .record(z.string().min(1).max(200), value)
    .refine((record) => Object.keys(record).length <= MAX_LINES, `More than ${MAX_LINES} lines`);

export const CheckPolicy = z.strictObject({
  version: z.int().min(1).max(1_000_000),
  /** By check id, or by id and reason (`pow_cpu POW_MISMATCH`): another mode than the table's, from a time on. */
  modes: lines(z.strictObject({ mode: z.enum(CHECK_MODES), from: Day.nullable() })),
  /** Oldest agent. */
  min_agent_version: VersionText,
  clock_warn_ms: z.int().min(0).max(600_000),
  clock_fail_ms: z.int().min(0).max(600_000),
  max_gpus: z.int().min(1).max(1_024),
  /** Memory in MiB by full GPU name: from, to. */
  models: lines(z.tuple([z.int().min(1), z.int().min(1)])),
  /** Oldest driver, and since when it counts. */
  driver_min: z.strictObject({ version: VersionText, from: Day }),
  /** SHA-256 of libnvidia-ml.so.1 by driver version. */
  driver_libraries: lines(z.array(z.string().regex(/^[0-9a-f]{64}$/)).max(100)),
  /** Of the default limit. */
  min_power_permille: Permille,
  idle_utilization_percent: z.int().min(1).max(100),
  idle_memory_permille: Permille,
  wedge_utilization_percent: z.int().min(1).max(100),
  wedge_memory_permille: Permille,
  /** How far two sources of one figure may lie apart. */
  memory_margin_permille: Permille,
  cpu_margin: z.int().min(0).max(1_024),
  /** What a host may use of its processors while no pod is on it. */
  max_side_load_cores: z.int().min(0).max(1_024),
  /** What of the disk of pods others may use. */
  max_side_disk_gib: z.int().min(0).max(1_000_000),
  /** Providers, and cards by UUID, beside those that the central API says are banned. */
  banned_hotkeys: z.array(Hotkey).max(10_000),
  banned_gpus: z.array(z.string().max(200)).max(10_000),
  min_free_disk_gib: z.int().min(0).max(1_000_000),
  /** Of the slower way of a line, in the mean; below `bandwidth_floor_mbit` the first look counts. */
  min_bandwidth_mbit: z.int().min(0).max(1_000_000),
  bandwidth_floor_mbit: z.int().min(0).max(1_000_000),
  /** Whose digest the host's engine has to learn from its registry; null: nothing is asked. */
  egress_image: EgressCheckRequest.shape.image.nullable(),
  /** Of templates that every host has to be able to start. */
  template_images: ImageCheckRequest.shape.images.min(0),
  min_ports_reached: z.int().min(1).max(100),
  /** Of what a proof takes others of the same processor. */
  pow_fastest_permille: Permille,
  pow_slowest_permille: Permille,
  /** How long a rental probe counts that passed, and what it runs. */
  rental_probe_hours: z.int().min(1).max(720),
  rental_probe_image: ImageReference,
});
export type CheckPolicy = z.output<typeof CheckPolicy>;

/** The policy that comes with this version. */
export const DEFAULT_CHECK_POLICY_FILE: string = join(
  import.meta.dirname,
  'default-check-policy.json',
);

/** Throws ConfigError that names the file and every wrong field. */
export function readCheckPolicy(path: string = DEFAULT_CHECK_POLICY_FILE): CheckPolicy {
  return readPolicyFile(CheckPolicy, path, { what: 'checks', maxBytes: MAX_POLICY_BYTES });
}

/** SHA-256 over its canonical JSON, hex. */
export function checkPolicyHashOf(policy: CheckPolicy): string {
  return sha256Hex(canonicalJson(policy));
}

/** The mode of a check at a time; of one of its reasons, where the policy has a line for that alone. */
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
