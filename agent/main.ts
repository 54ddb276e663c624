/** The agent's process: environment -> real adapters -> createAgent -> listen. */
import type { KeyObject } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { cpus, hostname, totalmem, uptime } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { RegistryAuth } from '#shared/agent-api/registry-auth.ts';
import { systemClock } from '#shared/clock.ts';
import { ConfigError } from '#shared/config.ts';
import { messageOf } from '#shared/errors.ts';
import { readEnrolment } from '#shared/identity/enrolment-file.ts';
import { openIdentity } from '#shared/identity/identity-key.ts';
import { createLog, type Log } from '#shared/log.ts';
import { systemRandom } from '#shared/random.ts';
import { runCommand } from '#shared/run-command.ts';
import { createServiceManager } from '#shared/service-manager/service-manager.ts';
import type { TrustedKey } from '#shared/signing/request-verifier.ts';
import { type CertificateSource, certificatesFor } from '#shared/tls/listener-certificate.ts';
import { readRegistryLogin } from '#shared/updates/registry-login.ts';
import { VERSION } from '#shared/version.ts';
import { type Agent, createAgent } from './app.ts';
import { createAuth } from './auth/auth.ts';
import { trustedKeysFrom } from './auth/key-set-file.ts';
import { createResticVersion } from './backups/restic-version.ts';
import {
  type AgentConfig,
  CONFIG_HELP,
  dockerSocketOf,
  isSecure,
  readConfig,
  updateOf,
} from './config.ts';
import { createDockerodeEngine } from './docker/dockerode-engine.ts';
import { endLeftoverTask } from './docker/leftover-task.ts';
import { createOwnContainers } from './docker/own-containers.ts';
import { createRunInContainer } from './docker/run-in-container.ts';
import { chooseGpuDriver } from './gpu/choose-gpu-driver.ts';
import { createGpuSource } from './gpu/gpu-source.ts';
import { createKernelLog } from './gpu/kernel-log.ts';
import { createNvidiaSmi } from './gpu/nvidia-smi.ts';
import { createHostProbe, readBootId } from './hardware/host-probe.ts';
import { createHostSources } from './hardware/host-sources.ts';
import { readNumaNodes } from './hardware/numa.ts';
import { createMetrics } from './metrics/metrics.ts';
import type { Firewall } from './network/firewall.ts';
import { createIptablesFirewall } from './network/iptables-firewall.ts';
import { hostResolvers } from './network/resolvers.ts';
import { createFolderBytes, createFolderEntries } from './pods/folder-bytes.ts';
import { removeAll } from './pods/remove-all.ts';
import {
  NO_POLICY,
  PolicyError,
  type ProviderPolicy,
  readPolicyFile,
} from './policy/policy-file.ts';
import { probePort } from './ports/port-probe.ts';
import { gatewayPaths } from './ssh/gateway-files.ts';
import { createGatewayLink } from './ssh/gateway-link.ts';
import { createKeyFolders } from './ssh/key-folders.ts';
import { prepareSftpFolder } from './ssh/sftp-folder.ts';
import { openHome } from './store/database.ts';
import { openSecretKey } from './store/secret-key.ts';
import { createContainerInstallation } from './updates/container-installation.ts';
import { createManifestReader } from './updates/manifest-reader.ts';
import { createReleaseTree } from './updates/release-tree.ts';
import { createSignedImage, PLATFORM } from './updates/signed-image.ts';
import { createTreeInstallation, createUpdateRequest } from './updates/tree-installation.ts';
import type { UpdatePorts } from './updates/update.service.ts';
import { createUpdateHold } from './updates/update-hold.ts';

const BYTES_PER_MIB = 1024 * 1024;
const MS_PER_SECOND = 1_000;
/** Requests and steps under way may take this long to end; a pod's step cut off later resumes at the next start. */
const SHUTDOWN_MS = 10_000;
/** Reconciling never waits for a pod, only for lists of the engine's, which have deadlines. */
const RECONCILED_WITHIN_MS = 60_000;
const IPV6_ADDRESSES = '/proc/net/if_inet6';
const UNITS_FOLDER = '/etc/systemd/system';
const EPHEMERAL_PORTS = '/proc/sys/net/ipv4/ip_local_port_range';

const NOT_ROOT =
  'not root: the data volumes of pods are neither counted against their disk limits nor backed up';

const HELP = `Usage: agent/main.ts [doctor | enrol | remove-all | --help | --version | --check-config]

The Podwright agent. Without an argument it runs; doctor looks over this host and says what to mend
(doctor --help); enrol has the provider vouch for this agent's key (enrol --help); remove-all removes
every pod of this executor from the Docker engine, while the agent is stopped (remove-all --help). It
is configured by environment variables:

${CONFIG_HELP}
`;

const REMOVE_ALL_HELP = `Usage: npm run agent -- remove-all

Removes every pod of this executor from the Docker engine, with its networks, its data volumes and
the images built here, and with what of lasting volumes lies here, saved or not: for a host that
leaves the market or a fresh start. Images from registries stay.
It is refused while the agent runs, and asks nothing first. It takes the variables of the agent:
AGENT_EXECUTOR_ID says whose pods, AGENT_HOME where the agent keeps its state.
`;

function configOrExit(): AgentConfig {
  try {
    return readConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`podwright-agent: ${error.message}\n`);
    process.exit(2);
  }
}

function trustedKeysOrExit(config: AgentConfig): readonly TrustedKey[] {
  try {
    return trustedKeysFrom(config.AGENT_TRUSTED_KEYS, config.AGENT_KEY_SET);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`podwright-agent: ${error.message}\n`);
    process.exit(2);
  }
}

function policyOrExit(path: string | undefined): ProviderPolicy {
  try {
    return path === undefined ? NO_POLICY : readPolicyFile(path);
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error;
    process.stderr.write(`podwright-agent: ${error.message}\n`);
    process.exit(2);
  }
}

async function run(config: AgentConfig): Promise<void> {
  const policy = policyOrExit(config.AGENT_POLICY);
  const keys = trustedKeysOrExit(config);
  const clock = systemClock;
  const log = createLog({ name: 'podwright-agent', level: config.AGENT_LOG_LEVEL });
  const serviceManager = createServiceManager({
    ...{ environment: process.env, pid: process.pid, runCommand, clock, log },
  });
  const firewall = firewallOf(config);
  if (config.AGENT_REQUIRE_FIREWALL) await firewallOrExit(firewall);
  warnAboutEphemeralPorts(config, log);
  if (process.getuid?.() !== 0) log.warn(NOT_ROOT);
  const home = openHome(config.AGENT_HOME);
  const socketPath = dockerSocketOf(config, process.env['DOCKER_HOST']);
  const executorId = config.AGENT_EXECUTOR_ID;
  const metrics = createMetrics({ clock, executorId });
  const identity = openIdentity(config.AGENT_HOME, systemRandom);
  const smi = createNvidiaSmi({
    ...{ clock, runCommand, program: config.AGENT_NVIDIA_SMI },
    onHang: () => metrics.timedOut('gpu'),
  });
  const gpuDriver = await chooseGpuDriver({
    mode: config.AGENT_GPU,
    simulatedGpus: config.AGENT_SIMULATED_GPUS,
    executorId,
    smi,
    clock,
  });
  const agent = createAgent({
    executorId,
    clock,
    random: systemRandom,
    log,
    database: home.database,
    engine: createDockerodeEngine({ socketPath, clock }),
    endLeftoverTask,
    execEngine: async () =>
      (await import('./docker/exec.ts')).createExecEngine({ socketPath, clock }),
    gpuDriver,
    gpus: createGpuSource(gpuDriver),
    gpuShare: { split: config.AGENT_GPU_SPLIT, minimum: config.AGENT_MIN_GPU_COUNT },
    kernelLog: createKernelLog(config.AGENT_KERNEL_LOG),
    numaNodes: readNumaNodes,
    folderBytes: createFolderBytes(runCommand),
    folderEntries: createFolderEntries(runCommand),
    runInContainer: createRunInContainer({ socketPath, clock }),
    hostProbe: createHostProbe({ clock }),
    hostSources: createHostSources({
      ...{ clock, folder: join(config.AGENT_HOME, 'scratch') },
      restic: createResticVersion({ clock, runCommand, program: 'restic' }),
    }),
    probePort,
    auth: createAuth({ clock, executorId, keys, log, metrics }),
    metrics,
    identity,
    readEnrolment: () => readEnrolment(config.AGENT_HOME),
    certificates: certificatesOf(config, identity.privateKey),
    separateMonitoring: config.AGENT_METRICS_LISTEN !== undefined,
    gpuMetrics: config.AGENT_GPU_METRICS,
    hostname: hostname(),
    portRange: config.AGENT_PORT_RANGE,
    subnetPool: config.AGENT_POD_SUBNETS,
    firewall,
    firewallRequired: config.AGENT_REQUIRE_FIREWALL,
    busyboxPath: config.AGENT_BUSYBOX,
    secret: openSecretKey(config.AGENT_HOME, systemRandom),
    imageMarks: config.AGENT_IMAGE_GC,
    buildsFolder: join(config.AGENT_HOME, 'builds'),
    scratchFolder: join(config.AGENT_HOME, 'scratch'),
    updates: updatesOf(config, keys, socketPath),
    gpuProofImage: config.AGENT_GPU_PROOF_IMAGE,
    gatewayLink: createGatewayLink({ agentHome: config.AGENT_HOME, clock, log }),
    keyFolders: createKeyFolders(gatewayPaths(config.AGENT_HOME).keys),
    sftpFolder: await sftpFolderIn(config.AGENT_HOME, log),
    host: {
      memoryBytes: totalmem(),
      memoryReserveBytes: config.AGENT_MEMORY_RESERVE_MIB * BYTES_PER_MIB,
      cpuCores: cpus().length,
      localRegistries: config.AGENT_ALLOW_LOCAL_REGISTRIES,
      policy,
      bootMs: clock.now() - uptime() * MS_PER_SECOND,
      bootId: readBootId(),
    },
  });

  const shutDown = once(async () => {
    await serviceManager.stopping();
    await endProcess(agent, home.close, log);
  });
  process.on('SIGTERM', shutDown);
  process.on('SIGINT', shutDown);
  if (config.AGENT_EXIT_WITH_PARENT && process.channel) process.on('disconnect', shutDown);

  await agent.server.listen({ host: config.AGENT_HOST, port: config.AGENT_PORT });
  if (config.AGENT_METRICS_LISTEN !== undefined) {
    await agent.monitoring?.listen(config.AGENT_METRICS_LISTEN);
  }
  agent.start();
  const address = agent.server.server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  log.info({ port, version: VERSION, executor_id: config.AGENT_EXECUTOR_ID }, 'listening');
  process.send?.({ ready: true, port });
  const bounds = { turnWithinMs: RECONCILED_WITHIN_MS };
  await serviceManager.ready({ look: agent.vitals, bounds });
}

/** Null: it is left to the provider. */
function updatesOf(
  config: AgentConfig,
  keys: readonly TrustedKey[],
  socketPath: string,
): UpdatePorts | null {
  const { AGENT_HOME: home, AGENT_EXECUTOR_ID: executorId } = config;
  const update = updateOf(config);
  if (update === null || update === undefined) return null;
  const docker = { socketPath, clock: systemClock };
  const engine = createDockerodeEngine(docker);
  const readLogin = () => updateLoginOf(config);
  const image = createSignedImage({ image: update.image, engine, readLogin });
  const { place } = update;
  return {
    ...{ image: update.image, platform: PLATFORM, keys },
    installation:
      place.kind === 'tree'
        ? createTreeInstallation({
            ...{ clock: systemClock, folder: place.folder, image, engine },
            own: fileURLToPath(new URL('..', import.meta.url)).replace(/\/$/, ''),
            unitsFolder: UNITS_FOLDER,
            tree: createReleaseTree(place.folder),
            request: createUpdateRequest(home),
          })
        : createContainerInstallation({
            ...{ name: place.name, image, executorId, engine },
            containers: createOwnContainers(docker),
          }),
    readManifest: createManifestReader(update.url, systemClock),
    intervalMs: config.AGENT_UPDATE_INTERVAL_S * MS_PER_SECOND,
    heldBy: createUpdateHold(join(home, 'update-hold')),
  };
}

/** Throws what is wrong with the file. */
function updateLoginOf(config: AgentConfig): RegistryAuth | undefined {
  const { AGENT_UPDATE_LOGIN_FILE: file, AGENT_UPDATE_IMAGE: image } = config;
  if (file === undefined || image === undefined) return undefined;
  return readRegistryLogin(file, image, 'AGENT_UPDATE_LOGIN_FILE');
}

function certificatesOf(config: AgentConfig, privateKey: KeyObject): CertificateSource | null {
  const { AGENT_TLS_CERT: certFile, AGENT_TLS_KEY: keyFile, AGENT_EXECUTOR_ID: name } = config;
  const file = join(config.AGENT_HOME, 'tls.crt');
  const own = { file, privateKey, name, clock: systemClock, random: systemRandom };
  return certificatesFor(isSecure(config), { certFile, keyFile }, own);
}

function firewallOf(config: AgentConfig): Firewall {
  return createIptablesFirewall({
    runCommand,
    allow: config.AGENT_EGRESS_ALLOW,
    resolvers: hostResolvers,
    hasIpv6: existsSync(IPV6_ADDRESSES),
  });
}

async function firewallOrExit(firewall: Firewall): Promise<void> {
  await firewall.assert().catch((error: unknown) => {
    process.stderr.write(`podwright-agent: AGENT_REQUIRE_FIREWALL is set: ${messageOf(error)}\n`);
    process.exit(1);
  });
}

/** Null, and a warning, when pods have to do without: SFTP and scp are then refused. */
async function sftpFolderIn(agentHome: string, log: Log): Promise<string | null> {
  const folder = gatewayPaths(agentHome).sftp;
  const ready = await prepareSftpFolder(folder, runCommand).catch((error: unknown) => {
    log.debug({ detail: messageOf(error) }, 'sftp-server could not be copied');
    return false;
  });
  if (!ready) log.warn('SFTP is unavailable: install the package openssh-sftp-server');
  return ready ? folder : null;
}

/** Anything that is not understood removes nothing. */
async function readRemoveAll(args: readonly string[]): Promise<void> {
  if (args.length === 0) return removeEverything(configOrExit());
  const isHelp = args.length === 1 && args[0] === '--help';
  (isHelp ? process.stdout : process.stderr).write(REMOVE_ALL_HELP);
  process.exitCode = isHelp ? 0 : 2;
}

function checkConfig(config: AgentConfig): void {
  try {
    updateLoginOf(config);
  } catch (error) {
    process.stderr.write(`podwright-agent: ${messageOf(error)}\n`);
    process.exit(2);
  }
  policyOrExit(config.AGENT_POLICY);
  trustedKeysOrExit(config);
}

/** Refused while the agent runs: it would start its pods again. */
async function removeEverything(config: AgentConfig): Promise<void> {
  const home = openHome(config.AGENT_HOME);
  const socketPath = dockerSocketOf(config, process.env['DOCKER_HOST']);
  const engine = createDockerodeEngine({ socketPath, clock: systemClock });
  const { containers, networks, volumes, images, firewallProblem } = await removeAll({
    engine,
    executorId: config.AGENT_EXECUTOR_ID,
    firewall: firewallOf(config),
  });
  home.close();
  const objects = `${containers} containers, ${networks} networks, ${volumes} data volumes`;
  process.stdout.write(`removed ${objects} and ${images} images built here\n`);
  if (firewallProblem !== null) {
    process.stderr.write(`firewall rules may be left: ${firewallProblem}\n`);
  }
  // The engine's idle connections would keep the process for a while.
  process.exit(0);
}

/** Loaded only here: a running agent has no use for it. */
async function enrol(args: readonly string[]): Promise<void> {
  const { EnrolError, runEnrol } = await import('./identity/enrol-command.ts');
  const host = () => {
    const { AGENT_HOME: home, AGENT_EXECUTOR_ID: executorId } = configOrExit();
    return { home, executorId };
  };
  try {
    process.stdout.write(runEnrol(args, { clock: systemClock, random: systemRandom, host }));
  } catch (error) {
    if (!(error instanceof EnrolError)) throw error;
    process.stderr.write(`podwright-agent: ${error.message}\n`);
    process.exitCode = 2;
  }
}

/** Loaded only here: a running agent has no use for it. */
async function examineHost(args: readonly string[]): Promise<never> {
  const { runDoctor } = await import('./doctor/run-doctor.ts');
  const { stdout, stderr, env } = process;
  const ports = { clock: systemClock, random: systemRandom, runCommand, environment: env };
  const status = await runDoctor(args, ports, {
    out: (text) => stdout.write(text),
    error: (text) => stderr.write(text),
    colours: stdout.isTTY === true && !env['NO_COLOR'],
  });
  // A question that nobody answers would keep the process.
  process.exit(status);
}

/** Pods keep running; the next start finds them by their labels. */
async function endProcess(agent: Agent, closeHome: () => void, log: Log): Promise<void> {
  log.info('shutting down; pods keep running');
  const timeUp = systemClock.sleep(SHUTDOWN_MS);
  await Promise.race([agent.stop(), timeUp]).catch((error: unknown) =>
    log.error({ err: error }, 'shutting down failed'),
  );
  closeHome();
  process.exit(0);
}

function once(work: () => Promise<void>): () => void {
  let begun = false;
  return () => {
    if (begun) return;
    begun = true;
    void work();
  };
}

/** The kernel hands these ports to outgoing connections, so one of ours may be taken at any moment. */
function warnAboutEphemeralPorts({ AGENT_PORT_RANGE: range }: AgentConfig, log: Log): void {
  try {
    const [low = 0, high = 0] = readFileSync(EPHEMERAL_PORTS, 'utf8').split(/\s+/).map(Number);
    if (range.first > high || range.last < low) return;
    log.warn({ range, ephemeral: { low, high } }, 'AGENT_PORT_RANGE overlaps the ephemeral ports');
  } catch (error) {
    log.debug({ detail: messageOf(error) }, 'the range of ephemeral ports is not known');
  }
}

if (process.features.typescript === false) throw new Error('run this with Node 26: npm run agent');

switch (process.argv[2]) {
  case undefined:
    await run(configOrExit());
    break;
  case 'remove-all':
    await readRemoveAll(process.argv.slice(3));
    break;
  case 'doctor':
    await examineHost(process.argv.slice(3));
    break;
  case 'enrol':
    await enrol(process.argv.slice(3));
    break;
  case '--version':
    process.stdout.write(`${VERSION}\n`);
    break;
  case '--check-config':
    checkConfig(configOrExit());
    process.stdout.write('configuration accepted\n');
    break;
  case '--help':
    process.stdout.write(HELP);
    break;
  default:
    process.stderr.write(HELP);
    process.exitCode = 2;
}
