/**
 * The parts of an agent's diagnosis archive. They are collected independently, so that the failure of one part does not
 * affect the other parts.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Part } from '#shared/check/archive/archive.ts';
import {
  commandPart,
  journalPart,
  leftOut,
  logParts,
  metricsPart,
  unitsPart,
  versionsPart,
} from '#shared/check/archive/host-parts.ts';
import { createRedact, type Redact } from '#shared/check/archive/redact.ts';
import { type DoctorPorts, type Finding, textReport } from '#shared/check/doctor.ts';
import { observe, valueOrNull } from '#shared/check/observe.ts';
import { localHostAndPort } from '#shared/http/listen.ts';
import { inspectConfig, settingsText } from '#shared/runtime/config.ts';
import { openSqliteReadOnly } from '#shared/runtime/sqlite.ts';
import { AGENT_CONFIG, type AgentConfig, dockerSocketOf, isSecure } from '../config.ts';
import { createDockerodeEngine } from '../containers/engine/dockerode-engine.ts';
import { readEngineReport } from '../containers/engine/engine-report.ts';
import { executorLabels } from '../containers/engine/labels.ts';
import { TABLE } from '../containers/network/firewall-rules.ts';
import { STORE_FILE } from '../database/database.ts';
import { storeSecrets, storeSummary } from './archive-store.ts';
import { readConfiguration } from './configuration.check.ts';

const UNITS = ['podwright-agent', 'podwright-ssh-gateway', 'podwright-kernel-log'];
const PROGRAMS = [
  ['docker', '--version'],
  ['restic', 'version'],
  ['iptables', '--version'],
] as const;
const ENGINE_MS = 10_000;
const STORE_MS = 10_000;

/**
 * If the store's secrets cannot be read, they cannot be redacted: the archive then lacks the parts that may contain
 * them.
 */
export async function archiveAgent(
  ports: DoctorPorts,
  logs: readonly string[],
  examine: () => Promise<Finding[]>,
): Promise<{ parts: readonly Part[]; redact: Redact }> {
  const { clock, runCommand, environment } = ports;
  const { config } = readConfiguration(environment);
  const redact = await observe(clock, STORE_MS, async () => createRedact(secretsOf(config)));
  const withSecrets = [storePart(config), journalPart(runCommand, UNITS), ...logParts(logs)];
  return {
    redact: valueOrNull(redact) ?? createRedact([]),
    parts: [
      versionsPart(runCommand, PROGRAMS),
      configurationPart(ports),
      { name: 'doctor.txt', collect: async () => textReport(await examine(), false) },
      ...engineParts(ports, config),
      // Only the table with our rules: the provider's other rules are private.
      commandPart('firewall.txt', runCommand, 'iptables', '-w', '-t', TABLE, '-S'),
      commandPart('nvidia-smi.txt', runCommand, config.AGENT_NVIDIA_SMI, '-q'),
      metricsPart(clock, metricsUrl(config)),
      unitsPart(runCommand, UNITS),
      ...('problem' in redact
        ? withSecrets.map((part) => leftOut(part, `the store: ${redact.problem}`))
        : withSecrets),
    ],
  };
}

function configurationPart({ environment }: DoctorPorts): Part {
  return {
    name: 'configuration.txt',
    async collect() {
      const { settings, problems, warnings } = inspectConfig(AGENT_CONFIG, environment);
      const lines = [...problems, ...warnings].map(({ message }) => `${message}\n`);
      return settingsText(settings) + lines.join('');
    },
  };
}

const storeIn = (config: AgentConfig) => join(config.AGENT_HOME, STORE_FILE);

function storePart(config: AgentConfig): Part {
  return {
    name: 'store.txt',
    collect: async () => withStore(config, (database) => storeSummary(database, storeIn(config))),
  };
}

function secretsOf(config: AgentConfig): string[] {
  if (!existsSync(storeIn(config))) return [];
  return withStore(config, (database) => storeSecrets(database, config.AGENT_HOME));
}

function withStore<T>(
  config: AgentConfig,
  work: (database: ReturnType<typeof openSqliteReadOnly>) => T,
): T {
  const database = openSqliteReadOnly(storeIn(config));
  try {
    return work(database);
  } finally {
    database.close();
  }
}

/** Returns the parts about the engine: its report, and the containers of this executor only. */
function engineParts({ clock, environment }: DoctorPorts, config: AgentConfig): Part[] {
  const socketPath = dockerSocketOf(config, environment['DOCKER_HOST']);
  const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;
  return [
    {
      name: 'engine.json',
      collect: async () => json(await readEngineReport(socketPath, clock.deadline(ENGINE_MS))),
    },
    {
      name: 'containers.json',
      async collect() {
        const engine = createDockerodeEngine({ socketPath, clock });
        return json(await engine.listContainers(executorLabels(config.AGENT_EXECUTOR_ID)));
      },
    },
  ];
}

function metricsUrl(config: AgentConfig): string {
  const { AGENT_METRICS_LISTEN: listen, AGENT_HOST: host, AGENT_PORT: port } = config;
  if (listen !== undefined) return `http://${localHostAndPort(listen.host, listen.port)}/metrics`;
  return `${isSecure(config) ? 'https' : 'http'}://${localHostAndPort(host, port)}/metrics`;
}
