/** Pods on the agent's wire: the spec that is sent, the view that is answered (design, agent's interface). */

import { createHash } from 'node:crypto';
import { z } from 'zod';
import { Counter, HostTime, MAX_DEVICES, Name, Port } from './bounds.ts';
import { FinishedPull, PullProgress, RegistryAuth } from './images.ts';
import { NotebookView } from './notebook.ts';
import { MAX_VOLUME_PATH_CHARS, MAX_VOLUMES, VolumeCopyId } from './volumes.ts';

export const PodId = z.uuid();
/** `GPU-<uuid>` or `MIG-<uuid>`; simulated ones are `GPU-51…`-shaped too. Never an index. */
export const GpuUuid = z.string().regex(/^(GPU|MIG)-[0-9a-fA-F-]{36}$/, 'Not a GPU UUID');
export const ImageDigest = z.string().regex(/^sha256:[0-9a-f]{64}$/, 'Not a sha256 digest');

/** `[host[:port]/]path[:tag]`, no digest; the digest has a field of its own. */
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
/** No options before the type: they could run a command. The gateway knows which types it can check. */
const PLAIN_KEY =
  /^(?:ssh|ecdsa|sk)-[a-z0-9@.-]+ [A-Za-z0-9+/]+={0,2}(?: [^\p{Cc}\u2028\u2029]*)?$/u;

/** Whether `line` is `type base64[ comment]`. */
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
  /** What the pod may write, its volumes included; absent: as much as there is. */
  disk_bytes: z
    .int()
    .min(16 * 1024 * 1024)
    .optional(),
});

const NamedImage = z.strictObject({
  reference: ImageReference,
  /** Given: exactly this image is run, or none. Absent: resolved at the first launch and then kept. */
  digest: ImageDigest.optional(),
});

export const MAX_DOCKERFILE_CHARS = 65_536;
/** Built on the host, from nothing but this text (contract 4.1, dockerfile_content). */
const BuiltImage = z.strictObject({ dockerfile: NoNul.min(1).max(MAX_DOCKERFILE_CHARS) });

/** UTF-16 units, of which a character takes two at most. */
export const MAX_TEMPLATE_LABEL = 128;

/** A whole pod. PUT is idempotent: a generation that is already stored with the same content changes nothing. */
export const PodSpec = z.strictObject({
  generation: Counter.min(1),
  image: z.union([NamedImage, BuiltImage]),
  /** Replaces the image's entrypoint; empty keeps it. */
  entrypoint: z.array(NoNul.max(4096)).max(64).default([]),
  /** Replaces the image's command; empty keeps it. */
  command: z.array(NoNul.max(65_536)).max(64).default([]),
  environment: z.record(EnvironmentName, NoNul.max(32_768)).default({}),
  /** Ports inside the pod that get a host port each; 22 is the one for SSH. */
  internal_ports: z.array(z.int().min(1).max(65_535)).max(64).default([]),
  /**
   * Where it gets a data volume each, by absolute path. What lies in them outlives the container: it goes
   * with the pod, and a path that a later generation leaves out is found as it was when it is named again.
   */
  volumes: z.array(NoNul.max(MAX_VOLUME_PATH_CHARS)).max(MAX_VOLUMES).default([]),
  /** A volume's copy, which is on the host already: mounted at VOLUME_MOUNT_PATH. It stays when the pod goes. */
  volume: z.strictObject({ id: VolumeCopyId }).optional(),
  /** Exactly these GPUs, all or none. Empty: a pod without GPUs. */
  gpu_uuids: z.array(GpuUuid).max(64).default([]),
  limits: PodLimits,
  /** From SIGTERM to SIGKILL. */
  stop_grace_seconds: z.int().min(0).max(120).default(10),
  /** Who may log in, until PUT ssh-keys says otherwise or the next generation brings its own list. */
  ssh_public_keys: z.array(SshPublicKey).max(MAX_SSH_KEYS).default([]),
  /** The image brings its own SSH server: port 22 is published like any other and we stay out of it. */
  publish_own_sshd: z.boolean().default(false),
  /** The beginning of the template's name, for whoever watches the host; nothing depends on it. */
  template: NoNul.max(MAX_TEMPLATE_LABEL).optional(),
  /** The agent removes the pod by itself so long after it came: whoever asked for it may be gone by then. */
  remove_after_seconds: z.int().min(1).max(86_400).optional(),
});
export type PodSpec = z.output<typeof PodSpec>;
export type PodSpecInput = z.input<typeof PodSpec>;

/**
 * What a PUT sends: the spec, and the login for the registry of its image or of a FROM line. The login is
 * not part of the spec: it is kept sealed while the pod may have to pull again, and never answered.
 */
export const PodPut = z.strictObject({
  ...PodSpec.shape,
  registry_auth: RegistryAuth.optional(),
});
export type PodPut = z.output<typeof PodPut>;
export type PodPutInput = z.input<typeof PodPut>;

export const DESIRED_STATES = ['running', 'removed'] as const;
/** Where a pod stands (agent reference 4). */
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

/** Why a pod is not (or no longer) running. Closed and stable: clients key on it (agent reference 4). */
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
  /** Only of pods with `limits.disk_bytes` that are measured: false from 85 % on. */
  'DiskWithinQuota',
  'SshReady',
  /** Only of pods with real GPUs: false from a fault of one of them on, while the container runs. */
  'GpuHealthy',
  /** The newest generation runs and has proved itself; false with the reason why it does not (yet). */
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
 * Where the change to a newer generation stands (agent reference 4, edit). The present container goes on
 * while `preparing`; it is stopped and kept while the new one is `replacing` it and, running, `settling`.
 * `failed`: the newer generation was given up for `reason` and the older one is (to be) running again.
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
  /** It is to stand still: PUT /v1/pods/{id}/standing. */
  stopped: z.boolean().default(false),
  phase: z.enum(POD_PHASES),
  /** When the present phase began, host clock, milliseconds. */
  phase_since_ms: HostTime,
  /** The newest that was accepted, also when it was given up since. */
  generation: Counter,
  /** The generation that the present container was made from; 0 before the first. */
  observed_generation: Counter,
  /** Null while the newest generation is the present one and nothing else is left to return to. */
  change: PodChange.nullable(),
  /** Counts requested and finished reboots; equal when none is under way. */
  reboots_requested: Counter,
  reboots_done: Counter,
  reason: ReasonCode.nullable(),
  message: z.string(),
  conditions: z.array(PodCondition),
  container_id: z.string().nullable(),
  /** `reference` of an image that is built here is `dockerfile`. */
  image: z.object({ reference: z.string(), digest: z.string().nullable() }),
  /** While the image, or what it is built on, is being pulled. */
  pull: PullProgress.nullable(),
  /** The pod's latest pull since the agent was started. */
  last_pull: FinishedPull.nullable().default(null),
  /** Internal port as text -> host port. Stable from the first launch to the removal. */
  ports: z.record(z.string().regex(/^\d{1,5}$/), Port),
  /** The login that the agent's gateway gives; null for a pod without port 22 or with its own server. */
  ssh: z
    .object({
      port: Port,
      /** `SHA256:…`; the same from admission to removal. */
      host_key_fingerprint: z.string(),
      /** The port listens and a login has run a command. */
      ready: z.boolean(),
    })
    .nullable(),
  /** `sshKeysHash` of the keys in force. */
  ssh_keys_hash: z.string(),
  /** The notebook server that was asked for; null when none was. */
  notebook: NotebookView.nullable().default(null),
  gpu_uuids: z.array(Name).max(MAX_DEVICES),
  /** True when the GPUs are simulated: nothing computes on them. */
  simulated: z.boolean(),
  restart_count: Counter,
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
});
export type PodView = z.output<typeof PodView>;

export const PodList = z.object({ pods: z.array(PodView) });

/** The verdict on a spec, with everything that speaks against it (agent reference 7). */
export const PodVerdict = z.object({
  accepted: z.boolean(),
  refusals: z.array(
    z.object({
      /** Of the spec; `pods` when the host has as many as its provider wants. */
      field: z.string(),
      /** The field of the provider's policy, or `host` for what no pod may have here. */
      rule: z.string(),
      message: z.string(),
    }),
  ),
});
export type PodVerdict = z.output<typeof PodVerdict>;

/** A reboot is identified by its count, so that a repeated request reboots once. */
export const RebootRequest = z.strictObject({
  /** `reboots_requested` + 1 as the caller last saw it. */
  reboot: Counter.min(1),
});

/** Whether the pod is to stand still: its container is stopped and kept with all its data. Repeating it is harmless. */
export const StopRequest = z.strictObject({ stopped: z.boolean() });
export type StopRequest = z.output<typeof StopRequest>;

/**
 * The whole list, which replaces the one in force without a new generation. A repeated PUT of the pod's
 * present generation leaves it alone; a higher generation brings its own list, which then counts.
 */
export const SshKeysRequest = z.strictObject({
  ssh_public_keys: z
    .array(SshPublicKey.refine(isPlainKey, 'Not "type base64 comment" without options'))
    .min(1)
    .max(MAX_SSH_KEYS),
});

export const LogsQuery = z.object({
  tail: z.coerce.number().int().min(0).max(10_000).default(100),
  /** Milliseconds since the epoch or a frame id: only later lines. */
  since: z.string().max(100).optional(),
  follow: z.stringbool().default(false),
  /** Only this one; both when left out. */
  stream: z.enum(['stdout', 'stderr']).optional(),
});
export type LogsQuery = z.output<typeof LogsQuery>;

/** One line of the container's output, or a note about the stream itself (contract 7). */
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

/** Variables of pods whose names are ours: what a renter gives them would be lost or misread. Pure. */

/** A template whose image brings its own SSH server says so with this variable set to 1. */
export const OWN_SSHD = 'PODWRIGHT_OWN_SSHD';

const OURS = /^PODWRIGHT_/i;

/**
 * The first name of `environment` that is ours, or null. `NVIDIA_VISIBLE_DEVICES` and
 * `NVIDIA_DRIVER_CAPABILITIES` are not among them: many images and templates name them, so they pass and
 * are set by the lease (agent reference 7).
 */
export function reservedVariable(environment: Readonly<Record<string, string>>): string | null {
  const isReserved = (name: string) => OURS.test(name) && name !== OWN_SSHD;
  return Object.keys(environment).find(isReserved) ?? null;
}

/** Equal for equal lists, order included. */
export function sshKeysHash(publicKeys: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(publicKeys)).digest('hex');
}
