/** Pods in the agent's interface: the spec in requests, the view in responses. */

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { Counter, HostTime, MAX_DEVICES, Name, Port } from './bounds.ts';
import { FinishedPull, PullProgress, RegistryAuth } from './images.ts';
import { NotebookView } from './notebook.ts';
import { MAX_POD_SECRETS, PodSecrets, SecretName } from './pod-secrets.ts';
import { MAX_VOLUME_PATH_CHARS, MAX_VOLUMES, VolumeCopyId } from './volumes.ts';

export const PodId = z.uuid();
/** `GPU-<uuid>` or `MIG-<uuid>`, also for simulated devices. Never an index. */
export const GpuUuid = z.string().regex(/^(GPU|MIG)-[0-9a-fA-F-]{36}$/, 'Not a GPU UUID');
export const ImageDigest = z.string().regex(/^sha256:[0-9a-f]{64}$/, 'Not a sha256 digest');

/** `[host[:port]/]path[:tag]`; the digest is a separate field. */
export const ImageReference = z
  .string()
  .max(255)
  .regex(
    /^(?:[a-zA-Z0-9.-]+(?::\d{1,5})?\/)?[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?$/,
    'Not an image reference',
  );

const EnvironmentName = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'Not a variable name');
const NoNul = z.string().refine((text) => !text.includes('\0'), 'Contains a NUL character');

const MAX_SSH_KEYS = 50;
/**
 * Options before the key type are not allowed: they could run a command. The gateway has the list of types that it can
 * verify.
 */
const PLAIN_KEY =
  /^(?:ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}(?: [^\p{Cc}\u2028\u2029]*)?$/u;

/** Returns true for `type base64[ comment]`. */
export function isPlainKey(line: string): boolean {
  return PLAIN_KEY.test(line);
}

const SshPublicKey = z
  .string()
  .max(16_384)
  .regex(/^[^\r\n\0]*$/, 'Not a single line');

export const PodLimits = z.strictObject({
  /** CPU cores, fractions allowed. */
  cpu_cores: z.number().min(0.1).max(1024),
  memory_bytes: z.int().min(16 * 1024 * 1024),
  shm_bytes: z.int().min(0),
  pids: z.int().min(16).max(1_000_000),
  /** Limit for the pod's writes, including its volumes, bytes; absent: no limit. */
  disk_bytes: z
    .int()
    .min(16 * 1024 * 1024)
    .optional(),
});

const NamedImage = z.strictObject({
  reference: ImageReference,
  /**
   * Present: exactly this image runs. Absent: the agent resolves the tag at the first launch and then keeps the digest.
   */
  digest: ImageDigest.optional(),
});

export const MAX_DOCKERFILE_CHARS = 65_536;
/** An image that the host builds from this text, without a build context. */
const BuiltImage = z.strictObject({ dockerfile: NoNul.min(1).max(MAX_DOCKERFILE_CHARS) });

/** Maximum length of the template's name, in UTF-16 units. */
export const MAX_TEMPLATE_LABEL = 128;

/**
 * The complete spec of a pod. PUT is idempotent: a stored generation sent again with the same content has no effect.
 */
export const PodSpec = z.strictObject({
  generation: Counter.min(1),
  image: z.union([NamedImage, BuiltImage]),
  /** Replaces the image's entrypoint; empty: the image's own. */
  entrypoint: z.array(NoNul.max(4096)).max(64).default([]),
  /** Replaces the image's command; empty: the image's own. */
  command: z.array(NoNul.max(65_536)).max(64).default([]),
  environment: z.record(EnvironmentName, NoNul.max(32_768)).default({}),
  /** Ports inside the pod; each gets a host port. 22 is for SSH. */
  internal_ports: z.array(z.int().min(1).max(65_535)).max(64).default([]),
  /**
   * Absolute mount paths of data volumes. Their data outlive the container and are deleted with the pod. If a later
   * generation omits a path, its data are retained until a generation lists it again.
   */
  volumes: z.array(NoNul.max(MAX_VOLUME_PATH_CHARS)).max(MAX_VOLUMES).default([]),
  /** A copy of a volume on the host, mounted at VOLUME_MOUNT_PATH. It is retained when the pod is removed. */
  volume: z.strictObject({ id: VolumeCopyId }).optional(),
  /** Exactly these GPUs, all or none. Empty: a pod without GPUs. */
  gpu_uuids: z.array(GpuUuid).max(64).default([]),
  limits: PodLimits,
  /** Time between SIGTERM and SIGKILL. */
  stop_grace_seconds: z.int().min(0).max(120).default(10),
  /** Keys that may log in, until PUT ssh-keys or the next generation replaces them. */
  ssh_public_keys: z.array(SshPublicKey).max(MAX_SSH_KEYS).default([]),
  /** True if the image has its own SSH server: port 22 is published like any other port, without our gateway. */
  publish_own_sshd: z.boolean().default(false),
  /** Names of the secrets that the pod finds as files below SECRETS_MOUNT_POINT. */
  secret_names: z.array(SecretName).max(MAX_POD_SECRETS).default([]),
  /** The beginning of the template's name, for operators of the host; nothing depends on it. */
  template: NoNul.max(MAX_TEMPLATE_LABEL).optional(),
  /** Seconds from the pod's creation until the agent removes it, unless a caller removes it earlier. */
  remove_after_seconds: z.int().min(1).max(86_400).optional(),
});
export type PodSpec = z.output<typeof PodSpec>;
export type PodSpecInput = z.input<typeof PodSpec>;

/**
 * Body of PUT: the spec, the login for the registry of its image or of a FROM line, and the values of its secrets. Login
 * and values are not part of the spec: they are stored encrypted and never returned. The pod keeps its values when a
 * later generation omits them.
 */
export const PodPut = z.strictObject({
  ...PodSpec.shape,
  registry_auth: RegistryAuth.optional(),
  secrets: PodSecrets.optional(),
});
export type PodPut = z.output<typeof PodPut>;
export type PodPutInput = z.input<typeof PodPut>;

export const DESIRED_STATES = ['running', 'removed'] as const;
/** States of a pod; agent/pods/README.md has the state diagram. */
export const POD_PHASES = [
  'pending',
  'pulling',
  'building',
  'creating',
  'starting',
  'running',
  'rebooting',
  'backoff',
  'removing',
  'removed',
  'failed',
  'quarantined',
] as const;
export type PodPhase = (typeof POD_PHASES)[number];

/** Why a pod is not running. Clients depend on these codes. */
export const REASON_CODES = [
  'ImageAuth',
  'ImageNotFound',
  'ImageRateLimited',
  'ImageNoSpace',
  'ImageStalled',
  'ImageDigestMismatch',
  'ImageUnreachable',
  'BuildFailed',
  'PortConflict',
  'PortPoolExhausted',
  'GpuUnavailable',
  'GpuDirty',
  'GpuUnhealthy',
  'GpuLostInContainer',
  'RuntimeMissing',
  'SpecRefused',
  'StartFailed',
  'OOMKilled',
  'ExitedNonZero',
  'ExitedZero',
  'CrashLoopBackOff',
  'HostReboot',
  'DockerUnavailable',
  'DeadlineExceeded',
  'DiskQuotaExceeded',
  'NameTaken',
  'Internal',
] as const;
export const ReasonCode = z.enum(REASON_CODES);
export type ReasonCode = z.output<typeof ReasonCode>;

export const CONDITION_TYPES = [
  'ImageReady',
  'NetworkReady',
  'PortsBound',
  'GpuLeased',
  'Running',
  /** Reported only if `limits.disk_bytes` is measured: false from 85 % of the limit on. */
  'DiskWithinQuota',
  'SshReady',
  /** Reported only for pods with real GPUs: false after a fault of one, while the container still runs. */
  'GpuHealthy',
  /** The newest generation runs and is past its probation; false with the reason otherwise. */
  'GenerationReady',
] as const;

export const PodCondition = z.object({
  type: z.enum(CONDITION_TYPES),
  status: z.boolean(),
  reason: z.string(),
  message: z.string(),
  last_transition_ms: HostTime,
});
export type PodCondition = z.output<typeof PodCondition>;

/**
 * Progress of a change to a newer generation. `preparing`: the current container still runs. `replacing`: it is stopped
 * and retained, and the new one starts. `settling`: the new one runs on probation. `failed`: the change was abandoned
 * for `reason`; the older generation runs again, or soon will.
 */
export const PodChange = z.object({
  generation: Counter,
  stage: z.enum(['preparing', 'replacing', 'settling', 'failed']),
  reason: ReasonCode.nullable(),
  message: z.string(),
});
export type PodChange = z.output<typeof PodChange>;

export const PodView = z.object({
  id: PodId,
  executor_id: z.uuid(),
  desired: z.enum(DESIRED_STATES),
  /** True if the pod is stopped on request: PUT /v1/pods/{id}/standing. */
  stopped: z.boolean().default(false),
  phase: z.enum(POD_PHASES),
  /** Start of the current phase by the host's clock, milliseconds since the epoch. */
  phase_since_ms: HostTime,
  /** The newest accepted generation, even if the change to it failed. */
  generation: Counter,
  /** The generation of the current container; 0 before the first. */
  observed_generation: Counter,
  /** Null if the newest generation runs and no older container is retained. */
  change: PodChange.nullable(),
  /** Numbers of requested and finished reboots; equal if none is pending. */
  reboots_requested: Counter,
  reboots_done: Counter,
  reason: ReasonCode.nullable(),
  message: z.string(),
  conditions: z.array(PodCondition),
  container_id: z.string().nullable(),
  /** `reference` is `dockerfile` for an image built on the host. */
  image: z.object({ reference: z.string(), digest: z.string().nullable() }),
  /** Set while the image or its base images are pulled. */
  pull: PullProgress.nullable(),
  /** The pod's latest pull since the agent was started. */
  last_pull: FinishedPull.nullable().default(null),
  /** Host ports by internal port. They do not change from the first launch to the removal. */
  ports: z.record(z.string().regex(/^\d{1,5}$/), Port),
  /** The login through the agent's gateway; null without port 22 or with the image's own SSH server. */
  ssh: z
    .object({
      port: Port,
      /** `SHA256:…`; does not change from the admission to the removal of the pod. */
      host_key_fingerprint: z.string(),
      /** Public host key, `ssh-ed25519 AAAA…`. Null from older agents. */
      host_key: z
        .string()
        .regex(/^ssh-ed25519 [A-Za-z0-9+/]{68}$/)
        .nullable()
        .default(null),
      /** True if the port listens and a login has run a command. */
      ready: z.boolean(),
    })
    .nullable(),
  /** `sshKeysHash` of the pod's current keys. */
  ssh_keys_hash: z.string(),
  /** The requested notebook server; null if none was requested. */
  notebook: NotebookView.nullable().default(null),
  gpu_uuids: z.array(Name).max(MAX_DEVICES),
  /** True when the GPUs are simulated: nothing computes on them. */
  simulated: z.boolean(),
  restart_count: Counter,
  /** True once a container has run for half a minute. Older agents do not send this field. */
  launched: z.boolean().default(true),
  next_retry_ms: HostTime.nullable(),
  last_exit: z
    .object({
      exit_code: z.int(),
      oom_killed: z.boolean(),
      finished_ms: HostTime,
      reason: ReasonCode,
    })
    .nullable(),
  created_ms: HostTime,
  updated_ms: HostTime,
  /** `remove_after_seconds` of the spec; null without such a limit, and from older agents. */
  remove_after_seconds: z.int().nullable().default(null),
});
export type PodView = z.output<typeof PodView>;

export const PodList = z.object({ pods: z.array(PodView) });

/** The host's verdict on a spec: accepted, or all reasons against it. */
export const PodVerdict = z.object({
  accepted: z.boolean(),
  refusals: z.array(
    z.object({
      /** Field of the spec; `pods` if the host already has its provider's maximum of pods. */
      field: z.string(),
      /** Field of the provider's policy, or `host` for limits of the host. */
      rule: z.string(),
      message: z.string(),
    }),
  ),
});
export type PodVerdict = z.output<typeof PodVerdict>;

/** Reboots a pod. The count identifies a reboot, so that a repeated request reboots once. */
export const RebootRequest = z.strictObject({
  /** The last known `reboots_requested` + 1. */
  reboot: Counter.min(1),
});

/** Stops or starts a pod. A stopped pod keeps its container and data. Idempotent. */
export const StopRequest = z.strictObject({ stopped: z.boolean() });
export type StopRequest = z.output<typeof StopRequest>;

/**
 * The complete list of keys; replaces the current keys without a new generation. A repeated PUT of the current
 * generation does not change the keys; a higher generation replaces them with the list in its spec.
 */
export const SshKeysRequest = z.strictObject({
  ssh_public_keys: z
    .array(SshPublicKey.refine(isPlainKey, 'Not "type base64 comment" without options'))
    .min(1)
    .max(MAX_SSH_KEYS),
});

export const LogsQuery = z.object({
  tail: z.coerce.number().int().min(0).max(10_000).default(100),
  /** Only lines after this time (milliseconds since the epoch) or frame id. */
  since: z.string().max(100).optional(),
  follow: z.stringbool().default(false),
  /** Default: both streams. */
  stream: z.enum(['stdout', 'stderr']).optional(),
});
export type LogsQuery = z.output<typeof LogsQuery>;

/** A line of the container's output, or an event of the stream itself. */
export const LogFrame = z.union([
  z.object({
    log: z.string(),
    id: z.string(),
    ts: z.string(),
    stream: z.enum(['stdout', 'stderr']),
  }),
  z.object({
    meta: z.enum(['start', 'gap', 'end', 'restart']),
    reason: z.string().optional(),
    dropped: z.int().optional(),
  }),
  /** Keep-alive. */
  z.strictObject({}),
]);
export type LogFrame = z.output<typeof LogFrame>;

/** Variable that is set to 1 in a template whose image has its own SSH server. */
export const OWN_SSHD = 'PODWRIGHT_OWN_SSHD';

const OURS = /^PODWRIGHT_/i;

/**
 * Returns the first reserved name in `environment`, or null. A renter's value for a reserved variable would be lost or
 * misread. `NVIDIA_VISIBLE_DEVICES` and `NVIDIA_DRIVER_CAPABILITIES` are allowed, because many templates set them; the GPU
 * lease overwrites them.
 */
export function reservedVariable(environment: Readonly<Record<string, string>>): string | null {
  const isReserved = (name: string) => OURS.test(name) && name !== OWN_SSHD;
  return Object.keys(environment).find(isReserved) ?? null;
}

/** Hashes a list of SSH keys, order included, so that two sides can compare their lists without sending them. */
export function sshKeysHash(publicKeys: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(publicKeys)).digest('hex');
}
