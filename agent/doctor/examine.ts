/** Asks the host everything, side by side and each with its deadline, then judges: the doctor's one path. */

import { readClockFacts } from '#shared/check/clock.facts.ts';
import { clockFindings } from '#shared/check/clock.findings.ts';
import type { Finding } from '#shared/check/finding.ts';
import { known, tell } from '#shared/check/told.ts';
import type { Clock } from '#shared/runtime/clock.ts';
import type { Random } from '#shared/runtime/random.ts';
import type { RunCommand } from '#shared/runtime/run-command.ts';
import { dockerSocketOf, isSecure } from '../config.ts';
import { readEngineReport } from '../containers/engine/engine-report.ts';
import { createNvidiaSmi } from '../gpu/nvidia/nvidia-smi.ts';
import { probePort } from '../leases/port.service.ts';
import { type ConfigurationFacts, NOBODY, readConfiguration } from './configuration.facts.ts';
import { configurationFindings } from './configuration.findings.ts';
import { notTried, tryContainers } from './container.facts.ts';
import { containerFindings } from './container.findings.ts';
import { readDiskFacts } from './disk.facts.ts';
import { diskFindings } from './disk.findings.ts';
import { engineFindings } from './engine.findings.ts';
import { readEnrolmentFacts } from './enrolment.facts.ts';
import { enrolmentFindings } from './enrolment.findings.ts';
import { readGpuFacts } from './gpu.facts.ts';
import { areLinked, gpuFindings, uuidsSeen } from './gpu.findings.ts';
import { readHomeFacts } from './home.facts.ts';
import { homeFindings } from './home.findings.ts';
import { hasSystemd, readHostFacts } from './host.facts.ts';
import { hostFindings } from './host.findings.ts';
import { readNetworkFacts } from './network.facts.ts';
import { networkFindings } from './network.findings.ts';
import type { DoctorOptions } from './options.ts';
import { readPortFacts } from './ports.facts.ts';
import { portFindings } from './ports.findings.ts';

export type DoctorPorts = {
  clock: Clock;
  random: Random;
  runCommand: RunCommand;
  environment: Record<string, string | undefined>;
};

const ENGINE_MS = 5_000;
const BYTES_PER_MIB = 2 ** 20;

/** One finding per check, always the same checks in the same order. Nothing stays of it but the built-in image. */
export async function examine(ports: DoctorPorts, options: DoctorOptions): Promise<Finding[]> {
  const configuration = readConfiguration(ports.environment);
  const first = await firstLook(ports, options, configuration);
  const second = await secondLook(ports, options, configuration, first);
  return judge(configuration, { ...first, ...second });
}

type FirstLook = Awaited<ReturnType<typeof firstLook>>;
type SecondLook = Awaited<ReturnType<typeof secondLook>>;

/** What needs nothing but the configuration. */
async function firstLook(
  { clock, runCommand, environment }: DoctorPorts,
  { timeFrom }: DoctorOptions,
  { config }: ConfigurationFacts,
) {
  const socketPath = dockerSocketOf(config, environment['DOCKER_HOST']);
  const [report, gpu, network, time, home, enrolment] = await Promise.all([
    tell(clock, ENGINE_MS, () => readEngineReport(socketPath, clock.deadline(ENGINE_MS))),
    readGpuFacts({
      clock,
      mode: config.AGENT_GPU,
      smi: createNvidiaSmi({ clock, runCommand, program: config.AGENT_NVIDIA_SMI }),
      runCommand,
      path: environment['PATH'] ?? '',
      root: '/',
    }),
    readNetworkFacts({ clock, runCommand, pool: config.AGENT_POD_SUBNETS }),
    readClockFacts({ clock, runCommand, timeFrom }),
    readHomeFacts({ clock, home: config.AGENT_HOME, busybox: config.AGENT_BUSYBOX }),
    readEnrolmentFacts(clock, config.AGENT_HOME),
  ]);
  return { socketPath, report, gpu, network, time, home, enrolment };
}

/** What needs the engine's answer, or to know whether the agent runs. */
async function secondLook(
  { clock, random, runCommand }: DoctorPorts,
  options: DoctorOptions,
  { config, executorId }: ConfigurationFacts,
  { socketPath, report, gpu, home }: FirstLook,
) {
  const agentRuns = (known(home.holder) ?? null) !== null;
  const mayRun = agentRuns || 'problem' in home.holder;
  const [ports, disk, container] = await Promise.all([
    readPortFacts({
      clock,
      agentHost: config.AGENT_HOST,
      agentPort: config.AGENT_PORT,
      secure: isSecure(config),
      range: config.AGENT_PORT_RANGE,
      executorId,
      agentMayRun: mayRun,
      address: options.address,
      probePort,
    }),
    readDiskFacts({
      clock,
      runCommand,
      engineRoot: known(report)?.rootDir ?? null,
      home: config.AGENT_HOME,
    }),
    containerLook(),
  ]);
  return { agentRuns, ports, disk, container };

  async function containerLook() {
    if (!options.container) return notTried('--no-container');
    if ('problem' in report) return notTried('the engine does not answer');
    return tryContainers({
      ...{ clock, random, socketPath, busybox: config.AGENT_BUSYBOX },
      executorId: executorId ?? NOBODY,
      gpuUuids: uuidsSeen(gpu),
    });
  }
}

function judge(configuration: ConfigurationFacts, facts: FirstLook & SecondLook): Finding[] {
  const { config, executorId } = configuration;
  const { socketPath, report, gpu, network, agentRuns, ports, container } = facts;
  const engine = { socketPath, report, systemd: hasSystemd(), quota: container.quota };
  const answers = executorId !== null && ports.answers.executorId === executorId;
  return [
    ...configurationFindings(configuration),
    ...enrolmentFindings(facts.enrolment, executorId),
    ...hostFindings(readHostFacts(config.AGENT_MEMORY_RESERVE_MIB * BYTES_PER_MIB)),
    ...engineFindings(engine, areLinked(gpu)),
    ...gpuFindings(gpu, known(report)),
    ...containerFindings(container),
    ...networkFindings(network, { agentRuns, required: config.AGENT_REQUIRE_FIREWALL }),
    ...portFindings(ports),
    ...diskFindings(facts.disk),
    ...clockFindings(facts.time),
    ...homeFindings(facts.home, answers),
  ];
}
