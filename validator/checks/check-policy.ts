/** The check policy: limits and modes of checks in a versioned file. Evidence stores its hash, so that verdicts can be replayed. */
import { z } from 'zod';
import {
  EgressCheckRequest,
  ImageCheckRequest,
  MAX_IMAGES,
} from '#shared/api/agent/host-checks.ts';
import { ImageReference } from '#shared/api/agent/pod.ts';
import { CHECK_MODES, type CheckMode } from '#shared/api/central/validator-routes.ts';
import { DEFAULT_CHECK_POLICY_FILE, Limits } from '#shared/check/limits.ts';
import { parseIsoTime } from '#shared/runtime/clock.ts';
import { canonicalJson } from '#shared/signing/canonical-json.ts';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { sha256Hex } from '#shared/signing/signed-request.ts';
import { CardSpeed } from './card-times.ts';
import { readPolicyFile } from './policy-file.ts';

const MAX_POLICY_BYTES = 1_000_000;
const MAX_LINES = 1_000;
const MAX_WHY_CHARS = 300;
/** The whole (a factor of 1) in `*_permille` fields. */
export const PERMILLE = 1_000;

const Day = z.string().refine((text) => parseIsoTime(text) !== null, 'Not an ISO 8601 time');
const VersionText = z.string().regex(/^\d{1,6}(\.\d{1,6}){1,3}$/, 'Not a version like 1.2.3');
const Permille = z.int().min(0).max(1_000_000);
const lines = <T>(value: z.ZodType<T>) =>
  z
    .record(z.string().min(1).max(200), value)
    .refine((record) => Object.keys(record).length <= MAX_LINES, `More than ${MAX_LINES} lines`);

export const CheckPolicy = z.strictObject({
  ...Limits.shape,
  version: z.int().min(1).max(1_000_000),
  /**
   * Replaces a check's default mode from a time on. Keys: check id, or check id and reason (`pow_cpu POW_MISMATCH`).
   */
  modes: lines(
    z.strictObject({
      mode: z.enum(CHECK_MODES),
      from: Day.nullable(),
      /** Reason for which failures are only recorded, and the date by which that is decided again. */
      why: z.string().min(1).max(MAX_WHY_CHARS).optional(),
      until: Day.optional(),
    }),
  ),
  /** Oldest accepted version of the agent. */
  min_agent_version: VersionText,
  max_gpus: z.int().min(1).max(1_024),
  /** Minimum and maximum memory in MiB, by full GPU name. */
  models: lines(z.tuple([z.int().min(1), z.int().min(1)])),
  /**
   * Speed of cards by full GPU name. A card that is slower, or not listed, earns no weight. Null, as in files of older
   * versions: times are compared with other hosts only.
   */
  card_times: lines(CardSpeed).nullable().default(null),
  /** Oldest accepted driver, and the time from which it is required. */
  driver_min: z.strictObject({ version: VersionText, from: Day }),
  /** SHA-256 of libnvidia-ml.so.1 by driver version. */
  driver_libraries: lines(z.array(z.string().regex(/^[0-9a-f]{64}$/)).max(100)),
  /** Minimum share of the default power limit. */
  min_power_permille: Permille,
  idle_utilization_percent: z.int().min(1).max(100),
  idle_memory_permille: Permille,
  wedge_utilization_percent: z.int().min(1).max(100),
  wedge_memory_permille: Permille,
  /** Maximum difference between two sources of the same value. */
  memory_margin_permille: Permille,
  cpu_margin: z.int().min(0).max(1_024),
  /** Maximum number of busy cores on a host without a pod. */
  max_side_load_cores: z.int().min(0).max(1_024),
  /** Maximum disk space that is used by data other than Docker's, on the disk of the pods. */
  max_side_disk_gib: z.int().min(0).max(1_000_000),
  /** Banned providers, and banned cards by UUID, in addition to those that the central API bans. */
  banned_hotkeys: z.array(Hotkey).max(10_000),
  banned_gpus: z.array(z.string().max(200)).max(10_000),
  /**
   * Minimum mean of the slower direction, after two measurements. `bandwidth_floor_mbit` is the minimum after the
   * first.
   */
  min_bandwidth_mbit: z.int().min(0).max(1_000_000),
  bandwidth_floor_mbit: z.int().min(0).max(1_000_000),
  /** Image whose digest the host's engine has to read from its registry; null for none. */
  egress_image: EgressCheckRequest.shape.image.nullable(),
  /** Images of templates that every host has to be able to start; empty for none. */
  template_images: z.array(ImageCheckRequest.shape.images.element).max(MAX_IMAGES),
  /** Minimum share of the sampled ports that the agent opens, and that the validator reaches. */
  min_ports_permille: z.int().min(1).max(PERMILLE),
  /** Accepted duration of a proof, relative to other executors with the same hardware. */
  pow_fastest_permille: Permille,
  pow_slowest_permille: Permille,
  /** Validity of a passed rental probe, and the image that it runs. */
  rental_probe_hours: z.int().min(1).max(720),
  rental_probe_image: ImageReference,
  /**
   * Rentals of each node in a day that hosts cannot recognise, 0 for none, and the hours for which the result of one
   * counts. Files of older versions lack both.
   */
  hidden_rentals_per_day: z.int().min(0).max(24).default(2),
  hidden_rental_hours: z.int().min(1).max(720).default(72),
});
export type CheckPolicy = z.output<typeof CheckPolicy>;

/** Throws ConfigError that names the file and every wrong field. */
export function readCheckPolicy(path: string = DEFAULT_CHECK_POLICY_FILE): CheckPolicy {
  return readPolicyFile(CheckPolicy, path, {
    what: 'checks',
    maxBytes: MAX_POLICY_BYTES,
    example: 'shared/check/default-check-policy.json',
  });
}

/** SHA-256 of the policy's canonical JSON, hex. */
export function checkPolicyHashOf(policy: CheckPolicy): string {
  return sha256Hex(canonicalJson(policy));
}

/** Adds the values of the policy's fields that a requirement names: "at least `min_free_disk_gib` (100) are free". */
export function withValues(required: string, policy: CheckPolicy): string {
  return required.replaceAll(/`(\w+)`/g, (name, field: string) => {
    const value = field === 'driver_min' ? policy.driver_min.version : settingOf(policy, field);
    const isShown = typeof value === 'number' || typeof value === 'string';
    return isShown ? `${name} (${value})` : name;
  });
}

function settingOf(policy: CheckPolicy, field: string): unknown {
  return Object.hasOwn(policy, field) ? policy[field as keyof CheckPolicy] : undefined;
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
