/** The agent's configuration: AGENT_* environment variables, parsed once and passed down as values. */
import { z } from 'zod';
import { BUILTIN_HOST } from '#shared/api/agent/images.ts';
import { ListenAddress, portConflict } from '#shared/http/listen.ts';
import {
  allOrNone,
  type ConfigProblem,
  type ConfigSpec,
  configError,
  type Environment,
  type IsSet,
  parseConfig,
} from '#shared/runtime/config.ts';
import { withoutUrlSecrets } from '#shared/runtime/secrets.ts';
import { Hotkey } from '#shared/signing/hotkey.ts';
import { ROLES, type TrustedKey } from '#shared/signing/request-verifier.ts';
import { TLS_MODES, tlsProblems } from '#shared/tls/tls-mode.ts';
import { RootKeys } from '#shared/updates/root-key-set.ts';
import { ImageName } from '#shared/updates/update-manifest.ts';
import { formatCidr, isPrivateRange, parseCidr, parsePool } from './containers/network/subnets.ts';
import { GPU_MODES } from './gpu/choose-gpu-driver.ts';
import { GPU_SPLITS } from './gpu/gpu-lease.ts';
import { KERNEL_LOG_PATH } from './gpu/kernel-log.ts';
import { parseSimulatedGpus } from './gpu/simulated-gpus.ts';

/** Names of GPU metrics: those of nvidia_gpu_exporter, of NVIDIA's DCGM exporter, both or none. */
const GPU_METRICS = ['nvidia', 'dcgm', 'both', 'none'] as const;
export type GpuMetrics = (typeof GPU_METRICS)[number];

/** The image of the GPU proof. The provider builds it from `agent/gpu-proof`; it is never pulled. */
const GPU_PROOF_IMAGE = `${BUILTIN_HOST}gpu-proof:3`;

const MAX_TRUSTED_KEYS = 100;
const MAX_RANGES = 100;
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

const Port = z.coerce.number('Not a port').int().min(0).max(65_535);

/** Format: `20000-20999`. */
const PortRange = z
  .string()
  .regex(/^\d{1,5}-\d{1,5}$/, 'Not a range like 20000-20999')
  .transform((text) => {
    const [first = 0, last = 0] = text.split('-').map(Number);
    return { first, last };
  })
  .refine(({ first, last }) => first >= 1024 && first <= last && last <= 65_535, {
    message: 'Both ends must be in 1024-65535, the first not above the last',
  });

/** Format: `ss58=role+role,ss58=role`. */
const TrustedKeys = z.string().transform((text, context): TrustedKey[] => {
  const entries = text.split(',').map((entry) => entry.trim());
  if (entries.length > MAX_TRUSTED_KEYS) context.addIssue(`At most ${MAX_TRUSTED_KEYS} keys`);
  return entries.flatMap((entry) => {
    const [address = '', roles = ''] = entry.split('=');
    const hotkey = Hotkey.safeParse(address);
    const granted = z.array(z.enum(ROLES)).min(1).safeParse(roles.split('+'));
    if (hotkey.success && granted.success) return [{ hotkey: hotkey.data, roles: granted.data }];
    const problem = hotkey.success ? `roles are ${ROLES.join(', ')}` : 'not an ss58 address';
    context.addIssue(`"${entry}" is not ss58=role+role: ${problem}`);
    return [];
  });
});

/** Format: `2/ss58,ss58,ss58`: the threshold and the root keys. */
const Root = z.string().transform((text, context): RootKeys => {
  const [threshold = '', addresses = ''] = text.split('/');
  const keys = addresses.split(',').map((entry) => entry.trim());
  const parsed = RootKeys.safeParse({ threshold: Number(threshold), keys });
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ message }) => message);
  context.addIssue(`Not like 2/ss58,ss58,ss58: ${[...new Set(problems)].join(', ')}`);
  return z.NEVER;
});

/** Format: `NVIDIA H100 80GB HBM3*2, NVIDIA L40S, NVIDIA H100 80GB HBM3[3g.40gb+1g.10gb*4]`. */
const SimulatedGpus = z.string().transform((text, context): string[] => {
  const names = parseSimulatedGpus(text);
  if (names === null) context.addIssue('Not a list like "NVIDIA L40S*2" of at most 64 GPUs');
  return names ?? [];
});

const NOT_PRIVATE = 'Must be inside 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 or 100.64.0.0/10';

/** Format: `10.201.0.0/16`. */
const SubnetPool = z.string().transform((text, context) => {
  const pool = parsePool(text);
  if (pool !== null && isPrivateRange(pool)) return pool;
  context.addIssue(
    pool === null ? 'Not an aligned range like 10.201.0.0/16, from /8 to /28' : NOT_PRIVATE,
  );
  return z.NEVER;
});

/** Format: `10.20.0.0/24,192.168.7.9/32`. */
const AddressRanges = z.string().transform((text, context): string[] => {
  const ranges = text.split(',').map((entry) => parseCidr(entry.trim()));
  if (ranges.length > MAX_RANGES) context.addIssue(`At most ${MAX_RANGES} ranges`);
  if (ranges.includes(null)) context.addIssue('Not a list of aligned ranges like 10.20.0.0/24');
  if (ranges.some((range) => range !== null && !isPrivateRange(range))) {
    context.addIssue(NOT_PRIVATE);
  }
  return ranges.flatMap((range) => (range === null ? [] : [formatCidr(range)]));
});

/** Format: `85-80`. */
const PercentRange = z
  .string()
  .regex(/^\d{1,3}-\d{1,3}$/, 'Not two percentages like 85-80')
  .transform((text) => {
    const [start = 0, stop = 0] = text.split('-').map(Number);
    return { start, stop };
  })
  .refine(({ start, stop }) => stop >= 10 && stop < start && start <= 99, {
    message: 'Both must be in 10-99, the first above the second',
  });

const MAX_PROGRAMS = 16;

/** Format: `dcgm-exporter,nv-hostengine`. The kernel shows 15 characters of a program's name. */
const ProgramNames = z.string().transform((text, context): string[] => {
  const names = text.split(',').map((name) => name.trim());
  if (names.length > MAX_PROGRAMS) context.addIssue(`At most ${MAX_PROGRAMS} programs`);
  if (names.some((name) => !/^[\w.-]{1,64}$/.test(name))) {
    context.addIssue('Not a list of programs like dcgm-exporter,nv-hostengine');
  }
  return names.map((name) => name.slice(0, COMM_CHARS));
});
const COMM_CHARS = 15;

const AbsolutePath = z.string().startsWith('/', 'Not an absolute path');

const Schema = z.object({
  AGENT_EXECUTOR_ID: z.uuid('Not a UUID'),
  AGENT_HOME: AbsolutePath.default('/var/lib/podwright'),
  AGENT_HOST: z.string().default('0.0.0.0'),
  AGENT_PORT: Port.default(8080),
  /** `auto`, an older default, is the same as `on`. */
  AGENT_TLS: z.enum(TLS_MODES).default('on'),
  AGENT_TLS_CERT: AbsolutePath.optional(),
  AGENT_TLS_KEY: AbsolutePath.optional(),
  AGENT_TLS_OFF_EXPOSED: z.stringbool().default(false),
  AGENT_METRICS_LISTEN: ListenAddress.optional(),
  AGENT_GPU_METRICS: z.enum(GPU_METRICS).default('nvidia'),
  AGENT_PORT_RANGE: PortRange.prefault('20000-20999'),
  AGENT_POD_SUBNETS: SubnetPool.prefault('10.201.0.0/16'),
  AGENT_EGRESS_ALLOW: AddressRanges.default([]),
  AGENT_REQUIRE_FIREWALL: z.stringbool().default(false),
  AGENT_TRUSTED_KEYS: TrustedKeys.default([]),
  AGENT_KEY_SET: z.string().startsWith('/', 'Not an absolute path').optional(),
  AGENT_ROOT_KEYS: Root.optional(),
  AGENT_GPU: z.enum(GPU_MODES).default('auto'),
  AGENT_SIMULATED_GPUS: SimulatedGpus.prefault('NVIDIA H100 80GB HBM3*2'),
  AGENT_GPU_MONITORS: ProgramNames.default([]),
  AGENT_GPU_SPLIT: z.enum(GPU_SPLITS).default('any'),
  AGENT_MIN_GPU_COUNT: z.coerce.number('Not a number').int().min(0).max(64).default(0),
  AGENT_NVIDIA_SMI: z.string().default('nvidia-smi'),
  AGENT_GPU_PROOF_IMAGE: z.string().min(1).max(200).default(GPU_PROOF_IMAGE),
  AGENT_BUSYBOX: z.string().default('/bin/busybox'),
  AGENT_SECRETS_FOLDER: z.string().startsWith('/').default('/dev/shm/podwright-secrets'),
  AGENT_DOCKER_SOCKET: z.string().optional(),
  AGENT_MEMORY_RESERVE_MIB: z.coerce.number('Not a number').int().min(0).default(1_024),
  AGENT_HOST_SHARE: z.coerce.number('Not a number').int().min(1).max(100).default(100),
  AGENT_ALLOW_LOCAL_REGISTRIES: z.stringbool().default(false),
  AGENT_IMAGE_GC: PercentRange.prefault('85-80'),
  AGENT_POLICY: AbsolutePath.optional(),
  AGENT_KERNEL_LOG: AbsolutePath.default(KERNEL_LOG_PATH),
  AGENT_UPDATE_URL: z
    .url({ protocol: /^https?$/, error: 'must be a URL that begins with https:// or http://' })
    .optional(),
  AGENT_UPDATE_IMAGE: ImageName.optional(),
  AGENT_UPDATE_CONTAINER: z
    .string()
    .regex(/^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,99}$/)
    .optional(),
  AGENT_UPDATE_TREE: AbsolutePath.optional(),
  AGENT_UPDATE_LOGIN_FILE: AbsolutePath.optional(),
  AGENT_UPDATE_INTERVAL_S: z.coerce.number('Not a number').int().min(1).max(86_400).default(300),
  AGENT_UPDATE_PROBATION_S: z.coerce.number('Not a number').int().min(1).max(3_600).default(60),
  AGENT_LOG_LEVEL: z.enum(LOG_LEVELS).default('info'),
  AGENT_EXIT_WITH_PARENT: z.stringbool().default(false),
});

export type AgentConfig = z.output<typeof Schema>;

export const AGENT_CONFIG: ConfigSpec<typeof Schema.shape> = {
  schema: Schema,
  prefix: 'AGENT_',
  rules: (valid, isSet) => [
    ...tlsProblems({
      prefix: 'AGENT',
      mode: valid.AGENT_TLS,
      host: valid.AGENT_HOST,
      acknowledged: valid.AGENT_TLS_OFF_EXPOSED,
      isSet,
    }),
    ...updateProblems(isSet),
    ...portProblems(valid),
  ],
};

/** Returns the conflicts between the ports of the listeners and of pods. */
function portProblems(valid: Partial<AgentConfig>): ConfigProblem[] {
  const { AGENT_HOST: host, AGENT_PORT: port, AGENT_PORT_RANGE: range } = valid;
  const metrics = valid.AGENT_METRICS_LISTEN;
  const main = { host, port, names: 'AGENT_HOST and AGENT_PORT' };
  const problems = portConflict('AGENT_METRICS_LISTEN', metrics, main);
  const isInRange = (other: number | undefined) =>
    range !== undefined && other !== undefined && range.first <= other && other <= range.last;
  const inRange = [
    ...(isInRange(port) ? ['AGENT_PORT'] : []),
    ...(isInRange(metrics?.port) ? ['AGENT_METRICS_LISTEN'] : []),
  ];
  const name = 'AGENT_PORT_RANGE';
  const problemOf = (other: string) => `${name}: must not include the port of ${other}`;
  return [...problems, ...inRange.map((other) => ({ name, message: problemOf(other) }))];
}

/**
 * Returns the problems of the update variables. A service always sets AGENT_UPDATE_TREE, even without updates. In a
 * container all three update variables are required together.
 */
function updateProblems(isSet: IsSet): ConfigProblem[] {
  const source = ['AGENT_UPDATE_URL', 'AGENT_UPDATE_IMAGE'];
  const tree = 'AGENT_UPDATE_TREE';
  const container = 'AGENT_UPDATE_CONTAINER';
  if (!isSet(tree)) return allOrNone([...source, container], isSet);
  if (!isSet(container)) return allOrNone(source, isSet);
  return [{ name: container, message: `${container}: unset it, this agent runs from ${tree}` }];
}

/** Throws ConfigError that names every problem. */
export function readConfig(environment: Environment): AgentConfig {
  const config = parseConfig(AGENT_CONFIG, environment);
  const problems = engineProblems(config, environment['DOCKER_HOST']);
  if (problems.length > 0) throw configError(problems);
  return config;
}

/** Source of updates, and what an update replaces: the agent's container, or the release in a folder of releases. */
export type UpdateConfig = {
  url: string;
  image: string;
  place: { kind: 'container'; name: string } | { kind: 'tree'; folder: string };
};

/** Returns null if the agent does not update itself. The schema rejects incomplete settings. */
export function updateOf(config: AgentConfig): UpdateConfig | null {
  const { AGENT_UPDATE_URL: url, AGENT_UPDATE_IMAGE: image } = config;
  const { AGENT_UPDATE_CONTAINER: name, AGENT_UPDATE_TREE: folder } = config;
  if (url === undefined || image === undefined) return null;
  if (folder !== undefined) return { url, image, place: { kind: 'tree', folder } };
  return name === undefined ? null : { url, image, place: { kind: 'container', name } };
}

/** Returns true if the agent serves TLS. The address does not matter, because a validator may be on the same host. */
export function isSecure({ AGENT_TLS: mode }: Pick<AgentConfig, 'AGENT_TLS'>): boolean {
  return mode !== 'off';
}

const DEFAULT_SOCKET = '/var/run/docker.sock';
const UNIX_PREFIX = 'unix://';
const MAX_SHOWN_CHARS = 200;

/** Returns AGENT_DOCKER_SOCKET, the Unix socket in DOCKER_HOST, or Docker's default socket. */
export function dockerSocketOf(config: AgentConfig, dockerHost: string | undefined): string {
  if (config.AGENT_DOCKER_SOCKET !== undefined) return config.AGENT_DOCKER_SOCKET;
  return dockerHost?.startsWith(UNIX_PREFIX) === true
    ? dockerHost.slice(UNIX_PREFIX.length)
    : DEFAULT_SOCKET;
}

/** Rejects a DOCKER_HOST that is not a Unix socket, because the agent would silently use another engine. */
export function engineProblems(
  config: AgentConfig,
  dockerHost: string | undefined,
): ConfigProblem[] {
  if (config.AGENT_DOCKER_SOCKET !== undefined || !dockerHost) return [];
  if (dockerHost.startsWith(`${UNIX_PREFIX}/`)) return [];
  const shown = JSON.stringify(withoutUrlSecrets(dockerHost).slice(0, MAX_SHOWN_CHARS));
  const name = 'DOCKER_HOST';
  const allowed = 'only unix:///path/of/a.sock is supported';
  const message = `${name} (${shown}): ${allowed}; unset it, or set AGENT_DOCKER_SOCKET`;
  return [{ name, message }];
}

/** Text of `--help` with all variables. */
export const CONFIG_HELP = `AGENT_EXECUTOR_ID         required: the node's id in the marketplace, a UUID
AGENT_HOME                folder of the store (/var/lib/podwright)
AGENT_HOST, AGENT_PORT    listen address (0.0.0.0, 8080)
AGENT_TLS                 on, or off: plain HTTP, which validators do not use by default; auto is the same as on (on)
AGENT_TLS_CERT, AGENT_TLS_KEY  PEM files (a self-signed certificate)
AGENT_TLS_OFF_EXPOSED     accept AGENT_TLS=off if other hosts can reach the listener (false)
AGENT_METRICS_LISTEN      plain HTTP address for /metrics, /healthz and /readyz, 127.0.0.1:9100; the main
                          listener then has no /metrics (none)
AGENT_GPU_METRICS         names of GPU metrics: nvidia (nvidia_smi_…), dcgm (DCGM_FI_…), both or none (nvidia)
AGENT_PORT_RANGE          host ports for pods (20000-20999)
AGENT_POD_SUBNETS         pool of the pods' subnets (10.201.0.0/16)
AGENT_EGRESS_ALLOW        private ranges that pods may reach: 10.20.0.0/24,… (none)
AGENT_REQUIRE_FIREWALL    start no pod without firewall rules (false)
AGENT_TRUSTED_KEYS        keys that may call the agent: ss58=role+role,ss58=role (none)
AGENT_KEY_SET             JSON file of keys with validity periods, signed by a trusted key (none)
AGENT_ROOT_KEYS           root keys that sign key sets: threshold/ss58,ss58 (those of the first key set)
AGENT_GPU                 auto, nvidia, simulated or none (auto)
AGENT_SIMULATED_GPUS      names of simulated GPUs (NVIDIA H100 80GB HBM3*2); split by MIG:
                          NVIDIA H100 80GB HBM3[3g.40gb+1g.10gb*4]
AGENT_GPU_MONITORS        monitoring programs of the provider that may run on leased cards: dcgm-exporter,… (none)
AGENT_GPU_SPLIT           any, or whole: a pod gets all GPUs of the host (any)
AGENT_MIN_GPU_COUNT       minimum number of GPUs per pod (0)
AGENT_NVIDIA_SMI          path of nvidia-smi (nvidia-smi)
AGENT_GPU_PROOF_IMAGE     image of the GPU proof, built from agent/gpu-proof (podwright.local/gpu-proof:3)
AGENT_BUSYBOX             static busybox for the built-in image (/bin/busybox)
AGENT_SECRETS_FOLDER      folder in memory for the secrets of pods (/dev/shm/podwright-secrets)
AGENT_DOCKER_SOCKET       the engine's socket (DOCKER_HOST, or /var/run/docker.sock)
AGENT_MEMORY_RESERVE_MIB  memory reserved for the host (1024)
AGENT_HOST_SHARE          percent of the host's memory and cores that this agent offers (100)
AGENT_ALLOW_LOCAL_REGISTRIES  allow images from registries at private addresses (false)
AGENT_IMAGE_GC            disk use in percent at which removal of unused images starts and stops (85-80)
AGENT_POLICY              the provider's policy, a JSON file (none)
AGENT_KERNEL_LOG          device, pipe or file with the driver's Xid messages (/dev/kmsg)
AGENT_UPDATE_URL          source of signed digests of new versions: https://…/api/updater/digest (no updates)
AGENT_UPDATE_IMAGE        repository of the new versions: ghcr.io/example/agent
AGENT_UPDATE_CONTAINER    name of the agent's own container, which an update replaces
AGENT_UPDATE_TREE         folder of releases from which the agent runs, set by its service (none)
AGENT_UPDATE_LOGIN_FILE   JSON file, mode 0600, with username and password for that repository (public)
AGENT_UPDATE_INTERVAL_S   seconds between update checks (300)
AGENT_UPDATE_PROBATION_S  seconds that a new version must work before the update is final (60)
AGENT_LOG_LEVEL           fatal, error, warn, info, debug, trace or silent (info)
AGENT_EXIT_WITH_PARENT    end when the parent process ends (false)`;
