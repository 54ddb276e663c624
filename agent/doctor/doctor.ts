/**
 * `npm run agent -- doctor`: collects facts about the host concurrently, each with a deadline, then runs the checks.
 */

import type { CheckDefinition } from '#shared/check/check.ts';
import { CLOCK_CHECKS, readClockFacts } from '#shared/check/clock.check.ts';
import {
  DOCTOR_EXIT_HELP,
  DOCTOR_JSON_HELP,
  DOCTOR_OPTIONS,
  type Doctor,
  type DoctorOptions,
  type DoctorPorts,
  type Finding,
  findingsOf,
} from '#shared/check/doctor.ts';
import { DEFAULT_LIMITS, Limits } from '#shared/check/limits.ts';
import { observe, valueOrNull } from '#shared/check/observe.ts';
import { readArguments, requireNone } from '#shared/runtime/arguments.ts';
import { dockerSocketOf, isSecure } from '../config.ts';
import { readEngineReport } from '../containers/engine/engine-report.ts';
import { createNvidiaSmi } from '../gpu/nvidia/nvidia-smi.ts';
import { probePort } from '../leases/port.service.ts';
import {
  CONFIGURATION_CHECKS,
  type ConfigurationFacts,
  NO_EXECUTOR,
  readConfiguration,
} from './configuration.check.ts';
import { CONTAINER_CHECKS, notTried, tryContainers } from './container.check.ts';
import { ENGINE_CHECKS } from './engine.check.ts';
import { ENROLMENT_CHECKS, readEnrolmentFacts } from './enrolment.check.ts';
import { areLinked, GPU_CHECKS, uuidsIn } from './gpu.check.ts';
import { readGpuFacts } from './gpu-facts.ts';
import { HOME_CHECKS, readHomeFacts } from './home.check.ts';
import {
  DISK_CHECKS,
  HOST_CHECKS,
  hasSystemd,
  readDiskFacts,
  readHostFacts,
} from './host.check.ts';
import { KEY_SET_CHECKS, readKeySetFacts } from './key-set.check.ts';
import { NETWORK_CHECKS, readNetworkFacts } from './network.check.ts';
import { PORT_CHECKS, readPortFacts } from './ports.check.ts';

export type AgentDoctorOptions = DoctorOptions & {
  /** True if checks may start containers. */
  container: boolean;
  /** The host's public address; null for the address of the interface with the default route. */
  address: string | null;
  /** URL of the server with whose clock the host's clock is compared; null for no comparison. */
  timeFrom: string | null;
  /** Free space on Docker's disk that validators require. */
  minFreeGib: number;
};

/** Options that the checks use. */
type Examination = Pick<AgentDoctorOptions, 'container' | 'address' | 'timeFrom' | 'minFreeGib'>;

/** Every check of the agent's doctor, in the order of the report. */
export const AGENT_CHECKS: readonly CheckDefinition[] = [
  ...CONFIGURATION_CHECKS,
  ...KEY_SET_CHECKS,
  ...ENROLMENT_CHECKS,
  ...HOST_CHECKS,
  ...ENGINE_CHECKS,
  ...GPU_CHECKS,
  ...CONTAINER_CHECKS,
  ...NETWORK_CHECKS,
  ...PORT_CHECKS,
  ...DISK_CHECKS,
  ...CLOCK_CHECKS,
  ...HOME_CHECKS,
];

const HELP = `Usage: npm run agent -- doctor [options]

Checks this host and reports what would prevent it from being rented, each with a remedy. Run it with the
variables and as the user of the agent, which may be running.

${DOCTOR_EXIT_HELP}

  --json            ${DOCTOR_JSON_HELP} instead of lines
  --no-container    start no container (otherwise the validator's probe is run once)
  --address HOST    name or address at which clients reach this host
  --time-from URL   compare the clock with the Date header of this URL, such as the central API
  --min-free-disk GIB  free space that validators require on Docker's disk (default ${DEFAULT_LIMITS.min_free_disk_gib}, as in the default check policy)
  --archive FILE    write this report and more (versions, configuration, journal, metrics, a summary of the
                    store; no secrets) to FILE, a tar.gz for support, instead of printing it
  --log FILE        add the end of this log to the archive; may be repeated
  --help            print this

Statuses: ok, warn (works now, will cause trouble), fail (pods will not run, or will be unreachable), unknown
(cannot be checked from this host).
`;

const HOST = /^[A-Za-z0-9.:-]{1,253}$/;
const ENGINE_MS = 5_000;
const NO_CONTAINER: Examination = {
  container: false,
  address: null,
  timeFrom: null,
  minFreeGib: DEFAULT_LIMITS.min_free_disk_gib,
};
const BYTES_PER_MIB = 2 ** 20;

export function agentDoctor(ports: DoctorPorts): Doctor<AgentDoctorOptions> {
  return {
    program: 'podwright-agent',
    help: HELP,
    readOptions,
    step: 'checking this host',
    examine: (options) => examine(ports, options),
    async archive(logs) {
      const { archiveAgent } = await import('./archive.ts');
      return archiveAgent(ports, logs, () => examine(ports, NO_CONTAINER));
    },
  };
}

const OPTIONS = {
  ...DOCTOR_OPTIONS,
  'no-container': { type: 'boolean', default: false },
  address: { type: 'string' },
  'time-from': { type: 'string' },
  'min-free-disk': { type: 'string', default: String(DEFAULT_LIMITS.min_free_disk_gib) },
} as const;

/** Parses the arguments; throws all problems with them. */
export function readOptions(args: readonly string[]): AgentDoctorOptions {
  const { values, problems } = readArguments(args, OPTIONS, 0);
  const { 'time-from': timeFrom = null, 'min-free-disk': gib } = values;
  // Accepts the brackets of an IPv6 address in a URL.
  const address = values.address?.replace(/^\[(.*:.*)\]$/, '$1') ?? null;
  const minFree = Limits.shape.min_free_disk_gib.safeParse(gib === '' ? null : Number(gib));
  requireNone([
    ...problems,
    ...(address === null || HOST.test(address) ? [] : [`--address ${address}: not a host name`]),
    ...(timeFrom === null || isHttp(timeFrom)
      ? []
      : [`--time-from ${timeFrom}: not an http(s) URL`]),
    ...(minFree.success ? [] : [`--min-free-disk ${gib}: not a number of GiB`]),
  ]);
  const minFreeGib = minFree.data ?? DEFAULT_LIMITS.min_free_disk_gib;
  return { ...values, container: !values['no-container'], address, timeFrom, minFreeGib };
}

function isHttp(text: string): boolean {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);
}

/** Collects the facts and returns the findings. Leaves nothing on the host except the built-in image. */
export async function examine(ports: DoctorPorts, options: Examination): Promise<Finding[]> {
  const configuration = readConfiguration(ports.environment);
  const first = await readIndependentFacts(ports, options.timeFrom, configuration);
  const second = await readDependentFacts(ports, options, configuration, first);
  return judge(configuration, { ...first, ...second });
}

type IndependentFacts = Awaited<ReturnType<typeof readIndependentFacts>>;
type DependentFacts = Awaited<ReturnType<typeof readDependentFacts>>;

/** Collects the facts that need only the configuration. */
async function readIndependentFacts(
  { clock, runCommand, environment }: DoctorPorts,
  timeFrom: string | null,
  { config, executorId }: ConfigurationFacts,
) {
  const socketPath = dockerSocketOf(config, environment['DOCKER_HOST']);
  const [report, gpu, network, time, home, enrolment, keySet] = await Promise.all([
    observe(clock, ENGINE_MS, () => readEngineReport(socketPath, clock.deadline(ENGINE_MS))),
    readGpuFacts({
      clock,
      mode: config.AGENT_GPU,
      smi: createNvidiaSmi({ clock, runCommand, program: config.AGENT_NVIDIA_SMI }),
      runCommand,
      path: environment['PATH'] ?? '',
      root: '/',
    }),
    readNetworkFacts({ clock, runCommand, pool: config.AGENT_POD_SUBNETS }),
    readClockFacts({ clock, runCommand, timeFrom, home: config.AGENT_HOME }),
    readHomeFacts({ clock, home: config.AGENT_HOME, busybox: config.AGENT_BUSYBOX }),
    readEnrolmentFacts(clock, config.AGENT_HOME, executorId),
    readKeySetFacts({ clock, home: config.AGENT_HOME, root: config.AGENT_ROOT_KEYS ?? null }),
  ]);
  return { socketPath, report, gpu, network, time, home, enrolment, keySet };
}

/** Collects the facts that depend on the engine's report, or on whether the agent runs. */
async function readDependentFacts(
  { clock, random, runCommand }: DoctorPorts,
  options: Examination,
  { config, executorId }: ConfigurationFacts,
  { socketPath, report, gpu, home }: IndependentFacts,
) {
  const agentRuns = (valueOrNull(home.holder) ?? null) !== null;
  const [ports, disk, container] = await Promise.all([
    readPortFacts({
      clock,
      agentHost: config.AGENT_HOST,
      agentPort: config.AGENT_PORT,
      secure: isSecure(config),
      range: config.AGENT_PORT_RANGE,
      executorId,
      agentMayRun: agentRuns || 'problem' in home.holder,
      address: options.address,
      probePort,
    }),
    readDiskFacts({
      clock,
      runCommand,
      engineRoot: valueOrNull(report)?.rootDir ?? null,
      home: config.AGENT_HOME,
      minFreeGib: options.minFreeGib,
    }),
    tryIfPossible(),
  ]);
  return { agentRuns, ports, disk, container };

  async function tryIfPossible() {
    if (!options.container) return notTried('--no-container');
    if ('problem' in report) return notTried('the engine does not answer');
    return tryContainers({
      clock,
      random,
      socketPath,
      busybox: config.AGENT_BUSYBOX,
      executorId: executorId ?? NO_EXECUTOR,
      gpuUuids: uuidsIn(gpu),
    });
  }
}

function judge(
  configuration: ConfigurationFacts,
  facts: IndependentFacts & DependentFacts,
): Finding[] {
  const { config, executorId } = configuration;
  const { socketPath, report, gpu, network, agentRuns, ports, container } = facts;
  const answers = executorId !== null && valueOrNull(ports.local) === executorId;
  const { quota } = container;
  return [
    ...findingsOf(CONFIGURATION_CHECKS, configuration),
    ...findingsOf(KEY_SET_CHECKS, facts.keySet),
    ...findingsOf(ENROLMENT_CHECKS, facts.enrolment),
    ...findingsOf(HOST_CHECKS, readHostFacts(config.AGENT_MEMORY_RESERVE_MIB * BYTES_PER_MIB)),
    ...findingsOf(ENGINE_CHECKS, {
      socketPath,
      report,
      systemd: hasSystemd(),
      quota,
      gpuLinks: areLinked(gpu),
    }),
    ...findingsOf(GPU_CHECKS, { ...gpu, engine: valueOrNull(report) }),
    ...findingsOf(CONTAINER_CHECKS, container),
    ...findingsOf(NETWORK_CHECKS, {
      ...network,
      agentRuns,
      required: config.AGENT_REQUIRE_FIREWALL,
    }),
    ...findingsOf(PORT_CHECKS, ports),
    ...findingsOf(DISK_CHECKS, facts.disk),
    ...findingsOf(CLOCK_CHECKS, facts.time),
    ...findingsOf(HOME_CHECKS, { ...facts.home, answers }),
  ];
}
